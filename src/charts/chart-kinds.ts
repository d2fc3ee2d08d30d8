/** The kinds of charts that `query_ads` and `write_report` draw. */
export const chartKinds = ['bar', 'line'] as const;
/** One of the kinds of charts. */
export type ChartKind = (typeof chartKinds)[number];
