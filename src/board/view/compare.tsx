import { useMemo } from 'preact/hooks';
import { listFacts } from './ad-facts.ts';
import { CloseButton, FullAdLoader, Modal } from './modal.tsx';
import { LazyPicture } from './pictures.tsx';
import { AdActions } from './selection.tsx';
import type { BoardController } from './state.ts';
import { type ComparedSegment, markDifferences } from './text-differences.ts';

/** The maximum number of ads that can be compared side by side. */
export const maxComparedAds = 4;

/**
 * A dialog that shows ads side by side, with one row per fact. Highlights the words that differ between the ad texts.
 */
export function CompareDialog({ board, ids }: { board: BoardController; ids: readonly string[] }) {
  const ads = ids.flatMap((id) => board.state.ads.find((ad) => ad.id === id) ?? []);
  const fullAds = ads.map(({ id }) => board.fullAds.get(id));
  const areFullAdsLoaded = ids.every((id) => board.fullAds.has(id));
  const textFields = useMemo(
    () =>
      [
        ['Headline', ads.map((ad, index) => (fullAds[index] ?? ad).headline ?? '')],
        ['Copy', ads.map(({ firstLine = '' }, index) => fullAds[index]?.body ?? firstLine)],
        ['Description', fullAds.map((ad) => ad?.linkDescription ?? '')],
      ] as const,
    [ids, areFullAdsLoaded],
  );
  const textRows = useMemo(
    () => textFields.map(([name, textsOfAds]) => [name, markDifferences(textsOfAds)] as const),
    [textFields],
  );
  const factsByAdIndex = ads.map((ad, index) => listFacts(ad, fullAds[index], board.state.formatters));
  return (
    <Modal id="compare" onClose={() => board.updateState({ comparedIds: undefined })}>
      <nav>
        <h2 id="compare-title">
          {ads.length} ads side by side <span class="number">In similar texts, the words that differ are marked.</span>
        </h2>
        <CloseButton />
      </nav>
      <FullAdLoader board={board} ids={ids} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must be able to scroll the table */}
      <section class="compared" aria-label="Ads side by side" tabIndex={0}>
        <table style={{ '--columns': ads.length }}>
          <thead>
            <tr>
              <th scope="row">Ad</th>
              {ads.map((ad) => (
                <th scope="col" key={ad.id}>
                  <LazyPicture ad={ad} board={board} />
                  <span class="number">{board.getAdNumber(ad)}</span> <bdi>{ad.pageName ?? 'Advertiser unknown'}</bdi>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {textRows.map(([name, segmentsOfAds]) => (
              <ComparisonRow
                key={name}
                name={name}
                cells={segmentsOfAds.map((segments) => segments.length > 0 && <MarkedText segments={segments} />)}
              />
            ))}
            {factsByAdIndex[0]?.map(([name], index) => {
              // The name of the end date is `Ended` for some ads and `Ends` for others.
              const isSameNameForAllAds = factsByAdIndex.every((factsOfAd) => factsOfAd[index]?.[0] === name);
              const cells = factsByAdIndex.map((factsOfAd) => factsOfAd[index]?.[1]);
              return <ComparisonRow key={name} name={isSameNameForAllAds ? name : 'End'} cells={cells} />;
            })}
          </tbody>
        </table>
      </section>
      <AdActions board={board} ids={ids} defaultRequest="Compare" />
    </Modal>
  );
}

type CellContent = string | false | undefined | ReturnType<typeof MarkedText>;

/**
 * A row of the table that compares ads. It contains the name of a text or fact, such as *Format*, and one cell per ad.
 * Renders nothing if all cells are empty.
 */
const ComparisonRow = ({ name, cells }: { name: string; cells: readonly CellContent[] }) =>
  cells.some(Boolean) ? (
    <tr>
      <th scope="row">{name}</th>
      {cells.map((cell) => (
        <td dir="auto">{cell || '–'}</td>
      ))}
    </tr>
  ) : null;

const MarkedText = ({ segments }: { segments: readonly ComparedSegment[] }) => (
  <>{segments.map(({ text, isDifferent }) => (isDifferent ? <mark>{text}</mark> : text))}</>
);
