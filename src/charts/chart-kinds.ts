/** Chart types that `query_ads` and `write_report` can draw. */
export const chartKinds = ['bar', 'line'] as const;
/** The type of a chart: bars or lines. */
export type ChartKind = (typeof chartKinds)[number];
