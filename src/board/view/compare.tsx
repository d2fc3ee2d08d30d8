import { useMemo } from 'preact/hooks';
import { listFacts } from './ad-facts.ts';
import { CloseButton, FullAdLoader, Modal } from './modal.tsx';
import { LazyPicture } from './pictures.tsx';
import { Actions } from './selection.tsx';
import type { BoardController } from './state.ts';
import { markDifferences, type TextPart } from './text-differences.ts';

/** The maximum number of ads that can be compared side by side. */
export const maxComparedAds = 4;

/**
 * A dialog that shows ads side by side, with one row per fact. Highlights the words that differ between the ad texts.
 */
export function CompareDialog({ board, ids }: { board: BoardController; ids: readonly string[] }) {
  const ads = ids.flatMap((id) => board.state.ads.find((ad) => ad.id === id) ?? []);
  const fullAds = ads.map(({ id }) => board.fullAds.get(id));
  const areAllLoaded = ids.every((id) => board.fullAds.has(id));
  const texts = useMemo(
    () =>
      [
        ['Headline', ads.map((ad, index) => (fullAds[index] ?? ad).headline ?? '')],
        ['Copy', ads.map(({ firstLine = '' }, index) => fullAds[index]?.body ?? firstLine)],
        ['Description', fullAds.map((ad) => ad?.linkDescription ?? '')],
      ] as const,
    [ids, areAllLoaded],
  );
  const rows = useMemo(() => texts.map(([name, fieldTexts]) => [name, markDifferences(fieldTexts)] as const), [texts]);
  const facts = ads.map((ad, index) => listFacts(ad, fullAds[index], board.state.formats));
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
            {rows.map(([name, cells]) => (
              <FactRow
                key={name}
                name={name}
                cells={cells.map((parts) => parts.length > 0 && <MarkedText parts={parts} />)}
              />
            ))}
            {facts[0]?.map(([name], index) => {
              // The name of the end date is `Ended` for some ads and `Ends` for others.
              const hasOneName = facts.every((factsOfAd) => factsOfAd[index]?.[0] === name);
              const cells = facts.map((factsOfAd) => factsOfAd[index]?.[1]);
              return <FactRow key={name} name={hasOneName ? name : 'End'} cells={cells} />;
            })}
          </tbody>
        </table>
      </section>
      <Actions board={board} ids={ids} defaultRequest="Compare" />
    </Modal>
  );
}

type CellContent = string | false | undefined | ReturnType<typeof MarkedText>;

/**
 * A row of the table that compares ads. It contains the name of a fact, such as *Format*, and one cell per ad. Renders
 * nothing if all cells are empty.
 */
const FactRow = ({ name, cells }: { name: string; cells: readonly CellContent[] }) =>
  cells.some(Boolean) ? (
    <tr>
      <th scope="row">{name}</th>
      {cells.map((cell) => (
        <td dir="auto">{cell || '–'}</td>
      ))}
    </tr>
  ) : null;

const MarkedText = ({ parts }: { parts: readonly TextPart[] }) => (
  <>{parts.map(({ text, isDifferent }) => (isDifferent ? <mark>{text}</mark> : text))}</>
);
