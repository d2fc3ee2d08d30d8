/** Abbreviations of ad networks that are common among marketers. They save tokens in lists of ads. */
const networkAbbreviations: ReadonlyMap<string, string> = new Map([
  ['FACEBOOK', 'FB'],
  ['INSTAGRAM', 'IG'],
  ['AUDIENCE_NETWORK', 'AN'],
  ['MESSENGER', 'MSG'],
  ['THREADS', 'TH'],
  ['WHATSAPP', 'WA'],
]);

/**
 * Matches the abbreviation of an ad network, e.g. `FB`. `quoteUnlessCodes` shows matching abbreviations without
 * quotation marks.
 */
export const networkAbbreviationPattern = new RegExp(`^(?:${[...networkAbbreviations.values()].join('|')})$`);

/** Returns the abbreviation of an ad network. Returns the name of the network if it has no abbreviation. */
export const abbreviateNetwork = (networkName: string) => networkAbbreviations.get(networkName) ?? networkName;

/**
 * Explains the abbreviations of the ad networks in a list of ads, e.g. `FB facebook, IG instagram`. Returns undefined
 * if no ad in the list runs on a network with an abbreviation.
 */
export function formatNetworkLegend(
  items: readonly { publisherPlatform?: readonly string[] | undefined }[],
): string | undefined {
  const usedNetworks = [...networkAbbreviations].filter(([name]) =>
    items.some((ad) => ad.publisherPlatform?.includes(name)),
  );
  return (
    usedNetworks.map(([name, abbreviation]) => `${abbreviation} ${name.toLowerCase().replace('_', ' ')}`).join(', ') ||
    undefined
  );
}
