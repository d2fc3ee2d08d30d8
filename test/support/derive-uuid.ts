/** Returns a UUID that depends only on the name. */
export const deriveUuid = (name: string): string =>
  `00000000-0000-4000-8000-${Buffer.from(name).toString('hex').slice(-12).padStart(12, '0')}`;
