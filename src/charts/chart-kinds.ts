export const chartKinds = ['bar', 'line'] as const;
export type ChartKind = (typeof chartKinds)[number];
