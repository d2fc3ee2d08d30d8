import { countReason } from './stored-pictures.ts';
import { removeAccessTokens } from './values/access-tokens.ts';

export type ImportReport = {
  ads: number;
  pages: number;
  /** Ads and pages that the library had before this import. */
  updated: number;
  /** Records that replaced an earlier record of the same import. */
  repeated: number;
  fromPublicArchive: number;
  skipped: number;
  /** How the columns of a table were understood, for people. */
  columns?: string;
  /** What was understood only in part, for people: keys and values, each with how often it occurred. */
  notes: string[];
  /** The first records that were skipped, each with the reason. `path` is the place in a document, empty for a line. */
  problems: { line: number; path: string; problem: string }[];
  /** How many further records were skipped, by reason. */
  reasons: Record<string, number>;
};

interface Place {
  line: number;
  path: string;
}

const maxProblems = 50;
const maxProblemLength = 500;
/** Different things that are noted of one source; and how many of them are listed. */
const maxNoted = 1000;
const maxListed = 20;

/** Counts what an import reads, and what it does not understand. */
export class ImportReporter {
  readonly report: ImportReport = {
    ...{ ads: 0, pages: 0, updated: 0, repeated: 0, fromPublicArchive: 0, skipped: 0 },
    ...{ notes: [], problems: [], reasons: {} },
  };
  readonly #unused = new Map<string, number>();
  readonly #values = new Map<string, { amount: number; place: Place; message: string }>();

  countSkipped({ line, path }: Place, error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    const problem = removeAccessTokens(message).slice(0, maxProblemLength);
    this.report.skipped++;
    if (this.report.problems.length < maxProblems) this.report.problems.push({ line, path, problem });
    else countReason(this.report.reasons, problem.split(';', 1)[0] ?? '');
  }

  /** Says why the whole source gave nothing. */
  addProblem(problem: string): void {
    this.report.problems.push({ line: 0, path: '', problem });
  }

  /** Counts a key that no field is made from. */
  countUnusedKey(key: string): void {
    if (this.#unused.has(key) || this.#unused.size < maxNoted) this.#unused.set(key, (this.#unused.get(key) ?? 0) + 1);
  }

  /** Counts a value that was not understood and did not cost its record. Values of one key are counted together. */
  countValueProblem(place: Place, message: string): void {
    const key = /^[^:]{1,100}: /.exec(message)?.[0] ?? message;
    const known = this.#values.get(key);
    if (known) known.amount++;
    else if (this.#values.size < maxNoted) this.#values.set(key, { amount: 1, place, message });
  }

  /** @param isTable the text of the columns already names the columns that are not used */
  finish(isTable: boolean): ImportReport {
    const { report } = this;
    const values = [...this.#values.values()];
    for (const { amount, place, message } of values.slice(0, maxListed)) {
      const where = [place.line > 0 ? `line ${place.line}` : '', place.path].filter((part) => part !== '').join(', ');
      const text = removeAccessTokens(message).slice(0, maxProblemLength);
      report.notes.push(`${amount.toLocaleString('en-US')} × ${text} (first: ${where})`);
    }
    if (values.length > maxListed) report.notes.push(`and values of ${values.length - maxListed} more keys`);
    if (!isTable && this.#unused.size > 0) report.notes.push(unusedText(this.#unused));
    return report;
  }
}

function unusedText(unused: ReadonlyMap<string, number>): string {
  const all = Array.from(unused).sort(([, one], [, other]) => other - one);
  const listed = all
    .slice(0, maxListed)
    .map(([key, amount]) => `${removeAccessTokens(key).replace(/\p{C}/gu, ' ').slice(0, 60)} (${amount})`);
  const more = all.length > maxListed ? ` and ${all.length - maxListed} more` : '';
  return `keys that are not understood, kept under their own names: ${listed.join(', ')}${more}`;
}
