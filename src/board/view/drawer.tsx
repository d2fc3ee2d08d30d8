import { buildAdCardContent, Labels, pickTitle } from '../../ui/ad-card.tsx';
import { FactList } from '../../ui/bars.tsx';
import type { Formatters } from '../../ui/formats.ts';
import { formatColumnTitle } from '../../views/column-title.ts';
import type { BriefAd, FullAd } from '../payload.ts';
import { listFacts } from './ad-facts.ts';
import { getVariantId } from './finding.ts';
import { RunBar } from './list.tsx';
import { CloseButton, FullAdLoader, Modal } from './modal.tsx';
import { LazyPicture } from './pictures.tsx';
import { AdActions } from './selection.tsx';
import { type BoardController, getErrorText, sortAds } from './state.ts';

/** A drawer (a panel next to the board) that shows all details of one ad. */
export function AdDrawer({ board, ad }: { board: BoardController; ad: BriefAd }) {
  const { adGroups, timeAxis, ads, sortName, formatters } = board.state;
  const { formatNumber } = formatters;
  // A card may represent several ads with nearly the same text, so look for the group that contains this ad.
  const groupIndex = adGroups.findIndex((adGroup) => adGroup.some(({ id }) => id === ad.id));
  const getNeighborAd = (offset: number) => (groupIndex === -1 ? undefined : adGroups[groupIndex + offset]?.[0]);
  const [previousAd, nextAd] = [getNeighborAd(-1), getNeighborAd(1)];
  const openAd = (adToOpen: BriefAd | undefined) => {
    if (adToOpen === undefined) return;
    board.updateState({ openAdId: adToOpen.id });
    document.querySelector('#drawer')?.scrollTo(0, 0);
  };
  // Also load the next and the previous ad, so that the drawer can show them without delay.
  const idsToPreload = [nextAd, previousAd].flatMap((adToPreload) => adToPreload?.id ?? []);
  const fullAd = board.fullAds.get(ad.id);
  const cardContent = buildAdCardContent(fullAd ?? ad);
  const variantAds = sortAds(
    ads.filter((candidate) => getVariantId(candidate) === getVariantId(ad)),
    sortName,
  );
  return (
    <Modal
      id="drawer"
      onClose={() => board.updateState({ openAdId: undefined })}
      onKeyDown={(key) => openAd(key === 'ArrowLeft' ? previousAd : key === 'ArrowRight' ? nextAd : undefined)}
    >
      <nav>
        <button
          type="button"
          class="icon"
          aria-label="Previous ad"
          disabled={!previousAd}
          onClick={() => openAd(previousAd)}
        >
          ‹
        </button>
        <button type="button" class="icon" aria-label="Next ad" disabled={!nextAd} onClick={() => openAd(nextAd)}>
          ›
        </button>
        <span class="number">
          Ad {board.getAdNumber(ad)}
          {groupIndex !== -1 && ` · ${formatNumber(groupIndex + 1)} of ${formatNumber(adGroups.length)}`}
        </span>
        <CloseButton />
      </nav>
      <LazyPicture key={ad.id} ad={ad} board={board} />
      <VariantStrip board={board} variantAds={variantAds} currentAd={ad} onOpen={openAd} />
      <p class="page" dir="auto">
        {ad.pageName ?? 'Advertiser unknown'}
      </p>
      <h2 id="drawer-title" dir="auto">
        {pickTitle(cardContent)}
      </h2>
      <AdActions key={`actions ${ad.id}`} board={board} ids={[ad.id]} />
      {fullAd && <LandingLink board={board} ad={fullAd} />}
      <FullAdLoader board={board} ids={[ad.id]} idsToPreload={idsToPreload} />
      {fullAd && <AdText board={board} ad={fullAd} />}
      {fullAd && <CarouselCardList board={board} ad={fullAd} />}
      <RunBar ad={ad} axis={timeAxis} />
      <Labels labels={cardContent.labels ?? []} />
      {fullAd && <ChangeList ad={fullAd} formatters={formatters} />}
      <FactList facts={listFacts(ad, fullAd, formatters)} />
    </Modal>
  );
}

/** The maximum number of ads in a `VariantStrip`. */
const maxPicturesInStrip = 60;

interface VariantStripProps {
  board: BoardController;
  variantAds: readonly BriefAd[];
  currentAd: BriefAd;
  onOpen(ad: BriefAd): void;
}

/**
 * A row of small pictures, one for each ad with nearly the same text as the open ad. Renders nothing if there is only
 * one such ad.
 */
const VariantStrip = ({ board, variantAds, currentAd, onOpen }: VariantStripProps) =>
  variantAds.length < 2 ? null : (
    <ul class="strip" aria-label={`${board.state.formatters.formatNumber(variantAds.length)} variants`}>
      {variantAds.slice(0, maxPicturesInStrip).map((ad) => (
        <li key={ad.id}>
          <button
            type="button"
            aria-current={ad.id === currentAd.id ? 'true' : undefined}
            title={pickTitle(buildAdCardContent(ad))}
            onClick={() => onOpen(ad)}
          >
            <LazyPicture ad={ad} board={board} />
            <span class="number">{board.getAdNumber(ad)}</span>
          </button>
        </li>
      ))}
    </ul>
  );

/** The texts of an ad, and a button that copies them to the clipboard. */
function AdText({ board, ad }: { board: BoardController; ad: FullAd }) {
  const title = pickTitle(buildAdCardContent(ad));
  const textFields = [ad.body, ad.headline === title ? undefined : ad.headline, ad.linkDescription];
  const adTexts = textFields.filter((text) => text !== undefined);
  if (adTexts.length === 0) return null;
  const copyTexts = () => {
    // The title of an ad without a headline is usually the first line of its body.
    const isTitleInBody = ad.headline !== title && ad.body?.includes(title) === true;
    const copiedTexts = isTitleInBody ? adTexts : [title, ...adTexts];
    const isCopied = copyToClipboard(copiedTexts.join('\n\n'));
    board.updateState({ statusText: isCopied ? 'The text was copied.' : 'This host does not let the board copy.' });
  };
  return (
    <>
      {adTexts.map((text) => (
        <p class="copy" dir="auto">
          {text}
        </p>
      ))}
      <button type="button" class="link" onClick={copyTexts}>
        Copy text
      </button>
    </>
  );
}

/**
 * Copies a text to the clipboard. Hosts do not let an embedded page write to the clipboard directly. This function
 * therefore runs the browser's copy command and sets the text in the handler of the `copy` event.
 * @returns true if the text was copied
 */
function copyToClipboard(text: string): boolean {
  let isCopied = false;
  const handleCopyEvent = (event: ClipboardEvent) => {
    event.clipboardData?.setData('text/plain', text);
    event.preventDefault();
    isCopied = true;
  };
  document.addEventListener('copy', handleCopyEvent, { once: true });
  document.execCommand('copy');
  document.removeEventListener('copy', handleCopyEvent);
  return isCopied;
}

/** The cards of a carousel ad. Renders nothing if the ad has no cards. */
const CarouselCardList = ({ board, ad }: { board: BoardController; ad: FullAd }) =>
  !ad.cards?.length ? null : (
    <ol class="ad-cards" aria-label="Cards">
      {ad.cards.map(({ title, body }, index) => (
        <li key={`${ad.id} ${index}`}>
          <LazyPicture ad={{ ...ad, headline: title ?? `Card ${index + 1}` }} board={board} cardNumber={index + 1} />
          <div>
            <b dir="auto">{title ?? `Card ${index + 1}`}</b>
            {body !== undefined && body !== ad.body && (
              <p class="copy" dir="auto">
                {body}
              </p>
            )}
          </div>
        </li>
      ))}
    </ol>
  );

/** A button that opens the landing page. Renders nothing if the URL is unknown or the host cannot open links. */
function LandingLink({ board, ad: { landingUrl } }: { board: BoardController; ad: FullAd }) {
  if (landingUrl === undefined || !board.hasCapability('openLinks')) return null;
  const { hostname } = new URL(landingUrl);
  const openLandingPage = () =>
    board.host
      .request('ui/open-link', { url: landingUrl })
      .catch((error) => board.updateState({ statusText: `${hostname} was not opened: ${getErrorText(error)}` }));
  return (
    <button type="button" class="link" onClick={() => void openLandingPage()}>
      Open {hostname} ↗
    </button>
  );
}

/** A list of the changes between the stored versions of an ad. Renders nothing if there are no changes. */
const ChangeList = ({ ad: { changes }, formatters: { formatDay } }: { ad: FullAd; formatters: Formatters }) =>
  changes.length === 0 ? null : (
    <section>
      <h3>What changed</h3>
      <ul class="changes">
        {changes.map(({ at, field, from, to }) => (
          <li>
            <span class="number">
              {formatDay(at)} · {formatColumnTitle(field)}
            </span>
            <del dir="auto">{from}</del> <ins dir="auto">{to}</ins>
          </li>
        ))}
      </ul>
    </section>
  );
