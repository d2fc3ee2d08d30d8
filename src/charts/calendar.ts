import { dayMs } from '../views/durations.ts';

/**
 * Interprets the cells of a column as dates, so that a chart can place them on a time axis. Times are in milliseconds
 * since the Unix epoch.
 */
export interface Calendar {
  /** Returns the start of the month, week or day in a cell, e.g. 1 June 2026 for `2026-06`. */
  parseStartMs(cell: string): number;
  /**
   * The unit of the dates: months, weeks or days. The chart adds missing dates in this unit. Undefined for times of
   * day, quarters and years, where no dates are added.
   */
  unit?: CalendarUnit;
}

/** The unit of the dates in a column: a month, a week or a day. */
export interface CalendarUnit {
  /** Returns the start of the month, week or day after `timeMs`, in milliseconds since the Unix epoch. */
  getNextStartMs(timeMs: number): number;
  formatName(timeMs: number): string;
  /**
   * False if the unit may actually be longer. For example, a column that contains only the months 2026-01 and 2026-04
   * may contain quarters.
   */
  isUnitCertain: boolean;
  /** True if the chart shows a gap for a missing date. In series of counts, it shows a zero instead. */
  showsGaps: boolean;
}

/**
 * Returns a calendar for the dates in a column, or undefined if the column contains anything but dates.
 * @param sql the SQL statement that returned the column; it may show how the weeks in the column are numbered
 */
export function createCalendar(columnName: string, cells: readonly unknown[], sql = ''): Calendar | undefined {
  if (cells.length === 0 || !cells.every((cell) => typeof cell === 'string')) return undefined;
  const weekCalendar = createWeekCalendar(columnName, cells, sql);
  if (weekCalendar) return weekCalendar;
  if (!cells.every(isDate)) return undefined;
  const parseStartMs = (cell: string) => Date.parse(cell);
  const times = [...new Set(cells.map(parseStartMs))].sort((a, b) => a - b);
  if (/quarter|year/i.test(columnName) && !/month/i.test(columnName)) return { parseStartMs };
  const hasDays = /day/i.test(columnName) && cells.some((cell) => cell.length > 'YYYY-MM'.length);
  if (!hasDays && cells.every((cell) => monthPattern.test(cell)))
    return { parseStartMs, unit: createMonthUnit(columnName, times) };
  if (times.some((time) => time % dayMs !== 0)) return { parseStartMs };
  return { parseStartMs, unit: createDayUnit(columnName, times) };
}

/** Matches a month such as `2026-06`, a day such as `2026-06-14`, or an ISO time. */
const datePattern = /^\d{4}-\d{2}(?:-\d{2}(?:T\d{2}:\d{2}:\d{2}(?:\.\d{1,3})?Z)?)?$/;
const isDate = (cell: string) => datePattern.test(cell) && !Number.isNaN(Date.parse(cell));
/** Matches a month such as `2026-06`, or the first day of a month such as `2026-06-01`. */
const monthPattern = /^\d{4}-\d{2}(?:-01(?:T00:00:00(?:\.000)?Z)?)?$/;

const formatIsoDay = (timeMs: number) => new Date(timeMs).toISOString().slice(0, 10);

function createMonthUnit(columnName: string, times: readonly number[]): CalendarUnit {
  const isUnitCertain =
    /month/i.test(columnName) || computeCommonDivisor(computeDistances(times.map(countMonths))) === 1;
  return {
    getNextStartMs: (timeMs) => Date.UTC(new Date(timeMs).getUTCFullYear(), new Date(timeMs).getUTCMonth() + 1),
    formatName: (timeMs) => formatIsoDay(timeMs).slice(0, 7),
    isUnitCertain,
    showsGaps: isUnitCertain,
  };
}

/**
 * Returns the number of months from the year 0 to `timeMs`. The distance between two dates in months is then a simple
 * difference.
 */
const countMonths = (timeMs: number) => new Date(timeMs).getUTCFullYear() * 12 + new Date(timeMs).getUTCMonth();

/**
 * Creates the unit for a column of days. The unit is a week if all dates fall on the same weekday and the column name
 * does not contain "day". For only one or two dates, the column name must also contain a word for "week".
 */
function createDayUnit(columnName: string, timesMs: readonly number[]): CalendarUnit {
  const distancesInDays = computeDistances(timesMs.map((time) => time / dayMs));
  const commonDivisor = computeCommonDivisor(distancesInDays);
  const isWeekly =
    commonDivisor % 7 === 0 && !/day/i.test(columnName) && (distancesInDays.length > 1 || isWeekName(columnName));
  const days = isWeekly ? 7 : 1;
  const isUnitCertain = (isWeekly ? isWeekName(columnName) : /day/i.test(columnName)) || commonDivisor === days;
  return {
    getNextStartMs: (timeMs) => timeMs + days * dayMs,
    formatName: formatIsoDay,
    isUnitCertain,
    // If most days are far apart, such as the days on which ads were read, they are not a daily series. Do not show the
    // days between them as gaps.
    showsGaps: isWeekly ? isUnitCertain : isDailySeries(distancesInDays),
  };
}

const computeDistances = (numbers: readonly number[]): number[] =>
  numbers.slice(1).map((number, index) => number - (numbers[index] ?? 0));

/** Returns true if at least half of the distances between neighboring dates are exactly one day. */
const isDailySeries = (distancesInDays: readonly number[]): boolean =>
  distancesInDays.filter((distance) => distance === 1).length * 2 >= distancesInDays.length;

const computeCommonDivisor = (numbers: readonly number[]): number => numbers.reduce(computeDivisorOfTwo, 0);
const computeDivisorOfTwo = (a: number, b: number): number => (b === 0 ? a : computeDivisorOfTwo(b, a % b));

const isWeekName = (columnName: string): boolean => /week|woche|semaine|semana|settimana|\bkw\b/i.test(columnName);

/** Matches a week in ISO format, e.g. `2026-W05`, or in the SQLite format `%Y-%W`, e.g. `2026-05`. */
const weekPattern = /^((?:19|20)\d{2})-(W?)(\d{2})$/;

/** Matches the date format in an SQL statement, e.g. `%Y-%W` in `strftime('%Y-%W', startedAt)`. */
const dateFormatPattern = /strftime\s*\(\s*'([^']*)'/gi;

/**
 * Creates a calendar for weeks, which consist of a year and a week number, e.g. `2026-W05`. Returns undefined if any
 * cell is not such a week. A cell such as `2026-05` could also be a month. It counts as a week only if the column name
 * or another cell shows that the column contains weeks.
 */
function createWeekCalendar(columnName: string, cells: readonly string[], sql: string): Calendar | undefined {
  const weekMatches = cells.map((cell) => weekPattern.exec(cell));
  if (!weekMatches.every((weekMatch) => weekMatch !== null && Number(weekMatch[3]) <= 53)) return undefined;
  const isWeekColumn =
    isWeekName(columnName) || weekMatches.some((weekMatch) => weekMatch?.[2] === 'W' || Number(weekMatch?.[3]) > 12);
  if (!isWeekColumn) return undefined;
  const weekLetter = weekMatches[0]?.[2] ?? '';
  // Most cells are valid weeks in both numbering systems, so try the more likely system first. If the statement does not
  // show the system, weeks with the letter `W`, e.g. `2026-W05`, are probably ISO weeks.
  const formats = [...sql.matchAll(dateFormatPattern)].map(([, format = '']) => format);
  const [hasMondayWeeks, hasIsoWeeks] = ['%W', '%V'].map((code) => formats.some((format) => format.includes(code)));
  const prefersIsoWeeks = hasMondayWeeks === hasIsoWeeks ? weekLetter === 'W' : hasIsoWeeks;
  const weekSystems = prefersIsoWeeks ? [isoWeeks, mondayWeeks] : [mondayWeeks, isoWeeks];
  const system = weekSystems.find((weekSystem) => cells.every((cell) => isExistingWeek(weekSystem, cell)));
  if (system === undefined) return undefined;
  const parseStartMs = (cell: string) => parseWeekStart(system, cell);
  const formatName = (timeMs: number) => {
    const { year, week } = system.getWeek(timeMs);
    return `${year}-${weekLetter}${String(week).padStart(2, '0')}`;
  };
  return {
    parseStartMs,
    unit: { getNextStartMs: system.getNextStartMs, formatName, isUnitCertain: true, showsGaps: true },
  };
}

/** A way to number the weeks of a year, such as ISO 8601. Times are in milliseconds. */
interface WeekSystem {
  getWeekStartMs(year: number, week: number): number;
  getWeek(timeMs: number): { year: number; week: number };
  getNextStartMs(timeMs: number): number;
}

const getMonday = (timeMs: number): number => timeMs - ((new Date(timeMs).getUTCDay() + 6) % 7) * dayMs;
const getYear = (timeMs: number): number => new Date(timeMs).getUTCFullYear();

/** ISO 8601 weeks (`%G-W%V`). Week 1 contains January 4. */
const isoWeeks: WeekSystem = {
  getWeekStartMs: (year, week) => getMonday(Date.UTC(year, 0, 4)) + (week - 1) * 7 * dayMs,
  getWeek: (timeMs) => {
    const year = getYear(timeMs + 3 * dayMs);
    return { year, week: Math.round((timeMs - isoWeeks.getWeekStartMs(year, 1)) / dayMs / 7) + 1 };
  },
  getNextStartMs: (timeMs) => timeMs + 7 * dayMs,
};

/**
 * Weeks in the SQLite format `%Y-%W`. Week 1 begins on the first Monday of the year. The days before it belong to week
 * 0.
 */
const mondayWeeks: WeekSystem = {
  getWeekStartMs: (year, week) =>
    Math.max(Date.UTC(year, 0, 1), getMonday(Date.UTC(year, 0, 7)) + (week - 1) * 7 * dayMs),
  getWeek: (timeMs) => {
    const year = getYear(timeMs);
    return { year, week: Math.floor((timeMs - mondayWeeks.getWeekStartMs(year, 1)) / dayMs / 7) + 1 };
  },
  getNextStartMs: (timeMs) => Math.min(getMonday(timeMs) + 7 * dayMs, Date.UTC(getYear(timeMs) + 1, 0, 1)),
};

function parseWeekStart(system: WeekSystem, cell: string): number {
  const [, year, , week] = weekPattern.exec(cell) ?? [];
  return system.getWeekStartMs(Number(year), Number(week));
}

/** Returns true if a cell such as `2026-53` names a week that exists in its year. */
function isExistingWeek(system: WeekSystem, cell: string): boolean {
  const [, year, , week] = weekPattern.exec(cell) ?? [];
  const weekOfStart = system.getWeek(parseWeekStart(system, cell));
  return weekOfStart.year === Number(year) && weekOfStart.week === Number(week);
}
