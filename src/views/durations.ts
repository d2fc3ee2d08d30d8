/**
 * The length of a day in milliseconds. The code of the ad board in the browser imports this file too, so the file must
 * not import anything.
 */
export const dayMs = 86_400_000;
