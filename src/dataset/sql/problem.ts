/** Why a statement gave no result. */
export interface SqlProblem {
  reason:
    | 'refused'
    | 'wrong'
    | 'tail'
    | 'empty'
    | 'slow'
    | 'endless'
    | 'memory'
    | 'long'
    | 'stopped'
    | 'tables'
    | 'json';
  /** The engine's own words, which may quote the statement and what it read. */
  detail?: string;
}

export class SqlFailure extends Error {
  override readonly name = 'SqlFailure';
  readonly problem: SqlProblem;

  constructor(problem: SqlProblem) {
    super(problem.reason);
    this.problem = problem;
  }
}
