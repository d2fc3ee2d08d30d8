/**
 * How ads begin, bargain and end, by language. `{brand}`, `{product}`, `{percent}` and `{days}` are filled in.
 * Angles are what a campaign is about; each has two openings, which its variants try against each other.
 */
export const angles = ['launch', 'offer', 'proof', 'story', 'question'] as const;
export type Angle = (typeof angles)[number];

export type Phrases = {
  openings: Record<Angle, [string, string]>;
  headlines: [string, string, string];
  offers: [string, string];
  closings: [string, string];
};
