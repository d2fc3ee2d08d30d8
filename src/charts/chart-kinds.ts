/** Chart types that `query_ads` and `write_report` can draw. */
export const chartKinds = ['bar', 'line'] as const;
/** A chart type. */
export type ChartKind = (typeof chartKinds)[number];
