/** A number of things as a service states it; undefined for what cannot be one. */
export const wholeNumber = (value: number | undefined): number | undefined =>
  value !== undefined && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
