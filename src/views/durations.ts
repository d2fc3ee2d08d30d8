/** The milliseconds of a day. The page of the board imports this module, so the module imports nothing. */
export const dayMs = 86_400_000;
