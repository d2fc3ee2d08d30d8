import { dayMs } from '../views/durations.ts';

/** An axis of dates: where each date stands, and which months, weeks or days lie between two dates. */
export interface Calendar {
  /** Returns the time at which the month, week or day of a cell begins. */
  timeOf(cell: string): number;
  /** The unit of the dates; undefined for times of day, quarters and years, which are not filled. */
  step?: CalendarStep;
}

export interface CalendarStep {
  nextTime(time: number): number;
  nameOf(time: number): string;
  /** False where the dates could be of a longer unit, such as quarters that are named by their first month. */
  isCertain: boolean;
  /** True where a date that is missing should be seen as a gap, also in numbers that are no counts. */
  hasGaps: boolean;
}

/** Returns the calendar of a column; undefined where the column holds anything but dates. */
export function calendarOf(columnName: string, cells: readonly unknown[]): Calendar | undefined {
  if (cells.length === 0 || !cells.every((cell) => typeof cell === 'string')) return undefined;
  const weeks = weekCalendar(columnName, cells);
  if (weeks) return weeks;
  if (!cells.every(isDate)) return undefined;
  const timeOf = (cell: string) => Date.parse(cell);
  const times = [...new Set(cells.map(timeOf))].sort((a, b) => a - b);
  if (/quarter|year/i.test(columnName) && !/month/i.test(columnName)) return { timeOf };
  const isOfDays = /day/i.test(columnName) && cells.some((cell) => cell.length > 'YYYY-MM'.length);
  if (!isOfDays && cells.every((cell) => month.test(cell))) return { timeOf, step: monthStep(columnName, times) };
  if (times.some((time) => time % dayMs !== 0)) return { timeOf };
  return { timeOf, step: dayStep(columnName, times) };
}

/** `2026-06`, `2026-06-14` and times. */
const date = /^\d{4}-\d{2}(?:-\d{2}(?:T\d{2}:\d{2}:\d{2}(?:\.\d{1,3})?Z)?)?$/;
const isDate = (cell: string) => date.test(cell) && !Number.isNaN(Date.parse(cell));
/** A month, or its first day. */
const month = /^\d{4}-\d{2}(?:-01(?:T00:00:00(?:\.000)?Z)?)?$/;

const isoDay = (time: number) => new Date(time).toISOString().slice(0, 10);

function monthStep(columnName: string, times: readonly number[]): CalendarStep {
  const isCertain = /month/i.test(columnName) || commonDivisor(distancesOf(times.map(monthNumber))) === 1;
  return {
    nextTime: (time) => Date.UTC(new Date(time).getUTCFullYear(), new Date(time).getUTCMonth() + 1),
    nameOf: (time) => isoDay(time).slice(0, 7),
    isCertain,
    hasGaps: isCertain,
  };
}

const monthNumber = (time: number) => new Date(time).getUTCFullYear() * 12 + new Date(time).getUTCMonth();

/** A step of a day, or of a week where all dates have the same day of the week. */
function dayStep(columnName: string, times: readonly number[]): CalendarStep {
  const distances = distancesOf(times.map((time) => time / dayMs));
  const divisor = commonDivisor(distances);
  const isWeekly = divisor % 7 === 0 && !/day/i.test(columnName) && (distances.length > 1 || isWeekName(columnName));
  const days = isWeekly ? 7 : 1;
  const isCertain = (isWeekly ? isWeekName(columnName) : /day/i.test(columnName)) || divisor === days;
  return {
    nextTime: (time) => time + days * dayMs,
    nameOf: isoDay,
    isCertain,
    // A few days far from each other, such as those of readings, are no series of days with gaps.
    hasGaps: isWeekly ? isCertain : isRegular(distances),
  };
}

const distancesOf = (numbers: readonly number[]): number[] =>
  numbers.slice(1).map((number, index) => number - (numbers[index] ?? 0));

const isRegular = (distances: readonly number[]): boolean =>
  distances.filter((distance) => distance === 1).length * 2 >= distances.length;

const commonDivisor = (numbers: readonly number[]): number => numbers.reduce(divisorOfTwo, 0);
const divisorOfTwo = (a: number, b: number): number => (b === 0 ? a : divisorOfTwo(b, a % b));

const isWeekName = (columnName: string): boolean => /week|woche|semaine|semana|settimana|\bkw\b/i.test(columnName);

/** A week as `2026-W05`, or as SQLite writes it for `%Y-%W`: `2026-05`. */
const weekText = /^((?:19|20)\d{2})-(W?)(\d{2})$/;

/** Returns the calendar of weeks that are written as a year and a number; undefined for other cells. */
function weekCalendar(columnName: string, cells: readonly string[]): Calendar | undefined {
  const weeks = cells.map((cell) => weekText.exec(cell));
  if (!weeks.every((week) => week !== null && Number(week[3]) <= 53)) return undefined;
  const isOfWeeks = isWeekName(columnName) || weeks.some((week) => week?.[2] === 'W' || Number(week?.[3]) > 12);
  if (!isOfWeeks) return undefined;
  const letter = weeks[0]?.[2] ?? '';
  // Most weeks have the same number in both systems. Without the letter, SQLite writes `%W`.
  const systems = letter === 'W' ? [isoWeeks, mondayWeeks] : [mondayWeeks, isoWeeks];
  const system = systems.find((weekSystem) => cells.every((cell) => hasWeek(weekSystem, cell)));
  if (system === undefined) return undefined;
  const timeOf = (cell: string) => weekStart(system, cell);
  const nameOf = (time: number) => {
    const { year, week } = system.weekOf(time);
    return `${year}-${letter}${String(week).padStart(2, '0')}`;
  };
  return { timeOf, step: { nextTime: system.nextTime, nameOf, isCertain: true, hasGaps: true } };
}

interface WeekSystem {
  startOf(year: number, week: number): number;
  weekOf(time: number): { year: number; week: number };
  nextTime(time: number): number;
}

const mondayOf = (time: number): number => time - ((new Date(time).getUTCDay() + 6) % 7) * dayMs;
const yearOf = (time: number): number => new Date(time).getUTCFullYear();

/** ISO 8601, as `%G-W%V`: the first week holds 4 January. */
const isoWeeks: WeekSystem = {
  startOf: (year, week) => mondayOf(Date.UTC(year, 0, 4)) + (week - 1) * 7 * dayMs,
  weekOf: (time) => {
    const year = yearOf(time + 3 * dayMs);
    return { year, week: Math.round((time - isoWeeks.startOf(year, 1)) / dayMs / 7) + 1 };
  },
  nextTime: (time) => time + 7 * dayMs,
};

/** As `%Y-%W`: the first week begins with the first Monday, and the days before it are week 0. */
const mondayWeeks: WeekSystem = {
  startOf: (year, week) => Math.max(Date.UTC(year, 0, 1), mondayOf(Date.UTC(year, 0, 7)) + (week - 1) * 7 * dayMs),
  weekOf: (time) => {
    const year = yearOf(time);
    return { year, week: Math.floor((time - mondayWeeks.startOf(year, 1)) / dayMs / 7) + 1 };
  },
  nextTime: (time) => Math.min(mondayOf(time) + 7 * dayMs, Date.UTC(yearOf(time) + 1, 0, 1)),
};

function weekStart(system: WeekSystem, cell: string): number {
  const [, year, , week] = weekText.exec(cell) ?? [];
  return system.startOf(Number(year), Number(week));
}

/** Whether the year of the cell has such a week. */
function hasWeek(system: WeekSystem, cell: string): boolean {
  const [, year, , week] = weekText.exec(cell) ?? [];
  const found = system.weekOf(weekStart(system, cell));
  return found.year === Number(year) && found.week === Number(week);
}
