import { buildCardAd, Labels, pickTitle } from '../../ui/ad-card.tsx';
import { FactList } from '../../ui/bars.tsx';
import type { Formats } from '../../ui/formats.ts';
import { formatColumnTitle } from '../../views/column-title.ts';
import type { BriefAd, FullAd } from '../payload.ts';
import { listFacts } from './ad-facts.ts';
import { variantOf } from './finding.ts';
import { RunBar } from './list.tsx';
import { CloseButton, FullAdLoader, Modal } from './modal.tsx';
import { LazyPicture } from './pictures.tsx';
import { Actions } from './selection.tsx';
import { getErrorText, sortAds, type View } from './state.ts';

export function Drawer({ view, ad }: { view: View; ad: BriefAd }) {
  const { cards, timeAxis, ads, sort, formats } = view.state;
  const { formatNumber } = formats;
  // An ad that is a variant of a card's has the position of the card.
  const position = cards.findIndex((group) => group.some(({ id }) => id === ad.id));
  const getNeighbour = (step: number) => (position === -1 ? undefined : cards[position + step]?.[0]);
  const [previousAd, nextAd] = [getNeighbour(-1), getNeighbour(1)];
  const open = (to: BriefAd | undefined) => {
    if (to === undefined) return;
    view.update({ openAdId: to.id });
    document.querySelector('#drawer')?.scrollTo(0, 0);
  };
  // The neighbours too, so that a step to them shows them at once.
  const idsToLoad = [ad, nextAd, previousAd].flatMap((one) => one?.id ?? []);
  const full = view.fullAds.get(ad.id);
  const card = buildCardAd(full ?? ad);
  const variantAds = sortAds(
    ads.filter((other) => variantOf(other) === variantOf(ad)),
    sort,
  );
  return (
    <Modal
      id="drawer"
      onClose={() => view.update({ openAdId: undefined })}
      onKeyDown={(key) => open(key === 'ArrowLeft' ? previousAd : key === 'ArrowRight' ? nextAd : undefined)}
    >
      <nav>
        <button
          type="button"
          class="icon"
          aria-label="Previous ad"
          disabled={!previousAd}
          onClick={() => open(previousAd)}
        >
          ‹
        </button>
        <button type="button" class="icon" aria-label="Next ad" disabled={!nextAd} onClick={() => open(nextAd)}>
          ›
        </button>
        <span class="number">
          Ad {view.getNumber(ad)}
          {position !== -1 && ` · ${formatNumber(position + 1)} of ${formatNumber(cards.length)}`}
        </span>
        <CloseButton />
      </nav>
      <LazyPicture key={ad.id} ad={ad} view={view} />
      <VariantStrip view={view} variants={variantAds} current={ad} onOpen={open} />
      <p class="page" dir="auto">
        {ad.pageName ?? 'Advertiser unknown'}
      </p>
      <h2 id="drawer-title" dir="auto">
        {pickTitle(card)}
      </h2>
      <Actions key={`actions ${ad.id}`} view={view} ids={[ad.id]} />
      {full && <LandingLink view={view} ad={full} />}
      <FullAdLoader view={view} ids={idsToLoad} />
      {full && <AdText view={view} ad={full} />}
      {full && <CardList view={view} ad={full} />}
      <RunBar ad={ad} axis={timeAxis} />
      <Labels labels={card.labels ?? []} />
      {full && <ChangeList ad={full} formats={formats} />}
      <FactList facts={listFacts(ad, full, formats)} />
    </Modal>
  );
}

interface VariantStripProps {
  view: View;
  variants: readonly BriefAd[];
  current: BriefAd;
  onOpen(ad: BriefAd): void;
}

const VariantStrip = ({ view, variants, current, onOpen }: VariantStripProps) =>
  variants.length < 2 ? null : (
    <ul class="strip" aria-label={`${view.state.formats.formatNumber(variants.length)} variants`}>
      {variants.slice(0, 60).map((ad) => (
        <li key={ad.id}>
          <button
            type="button"
            aria-current={ad.id === current.id ? 'true' : undefined}
            title={pickTitle(buildCardAd(ad))}
            onClick={() => onOpen(ad)}
          >
            <LazyPicture ad={ad} view={view} />
            <span class="number">{view.getNumber(ad)}</span>
          </button>
        </li>
      ))}
    </ul>
  );

function AdText({ view, ad }: { view: View; ad: FullAd }) {
  const title = pickTitle(buildCardAd(ad));
  const parts = [ad.body, ad.headline === title ? undefined : ad.headline, ad.linkDescription];
  const texts = parts.filter((text) => text !== undefined);
  if (texts.length === 0) return null;
  const copy = () => {
    const isCopied = copyToClipboard([title, ...texts].join('\n\n'));
    view.update({ status: isCopied ? 'The text was copied.' : 'This host does not let the board copy.' });
  };
  return (
    <>
      {texts.map((text) => (
        <p class="copy" dir="auto">
          {text}
        </p>
      ))}
      <button type="button" class="link" onClick={copy}>
        Copy text
      </button>
    </>
  );
}

/** Hosts give the frame no right to the clipboard itself; what a reader copies may be replaced. */
function copyToClipboard(text: string): boolean {
  let isCopied = false;
  const writeText = (event: ClipboardEvent) => {
    event.clipboardData?.setData('text/plain', text);
    event.preventDefault();
    isCopied = true;
  };
  document.addEventListener('copy', writeText, { once: true });
  document.execCommand('copy');
  document.removeEventListener('copy', writeText);
  return isCopied;
}

const CardList = ({ view, ad }: { view: View; ad: FullAd }) =>
  !ad.cards?.length ? null : (
    <ol class="ad-cards" aria-label="Cards">
      {ad.cards.map(({ title, body }, index) => (
        <li key={`${ad.id} ${index}`}>
          <LazyPicture ad={{ ...ad, headline: title ?? `Card ${index + 1}` }} view={view} card={index + 1} />
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

function LandingLink({ view, ad: { landingUrl } }: { view: View; ad: FullAd }) {
  if (landingUrl === undefined || !view.hasCapability('openLinks')) return null;
  const { hostname } = new URL(landingUrl);
  const open = () =>
    view.host
      .request('ui/open-link', { url: landingUrl })
      .catch((error) => view.update({ status: `${hostname} was not openAdId: ${getErrorText(error)}` }));
  return (
    <button type="button" class="link" onClick={() => void open()}>
      Open {hostname} ↗
    </button>
  );
}

const ChangeList = ({ ad: { changes }, formats: { formatDay } }: { ad: FullAd; formats: Formats }) =>
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
