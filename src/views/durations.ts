/** One day in milliseconds. The browser code of the board also imports this file, so it must not import anything. */
export const dayMs = 86_400_000;
