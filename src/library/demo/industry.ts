/** What advertisers trade in, by which their phrases and habits are chosen. */
export type Industry =
  | 'beauty'
  | 'fashion'
  | 'food'
  | 'home'
  | 'education'
  | 'software'
  | 'travel'
  | 'fitness'
  | 'pets'
  | 'games'
  | 'finance'
  | 'energy';
