/** The milliseconds of a day. The board's page imports this module, so it imports nothing. */
export const dayMs = 86_400_000;
