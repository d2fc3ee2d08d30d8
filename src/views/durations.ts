/** One day in milliseconds. Browser code imports this file too, so it must not import anything. */
export const dayMs = 86_400_000;
