import { buildCardAd, Labels, pickTitle } from '../../ui/ad-card.tsx';
import { FactList } from '../../ui/bars.tsx';
import type { Formats } from '../../ui/formats.ts';
import { formatColumnTitle } from '../../views/column-title.ts';
import type { BriefAd, FullAd } from '../payload.ts';
import { factsOf } from './ad-facts.ts';
import { messageOf } from './finding.ts';
import { RunBar } from './list.tsx';
import { CloseButton, Modal, WholeAds } from './modal.tsx';
import { LaterFrame } from './pictures.tsx';
import { Actions } from './selection.tsx';
import { problemOf, sorted, type View } from './state.ts';

export function Drawer({ view, ad }: { view: View; ad: BriefAd }) {
  const { cards, axis, ads, sort, formats } = view.state;
  const { formatNumber } = formats;
  // An ad that is a variant of a card's has the position of the card.
  const position = cards.findIndex((group) => group.some(({ id }) => id === ad.id));
  const neighbour = (step: number) => (position === -1 ? undefined : cards[position + step]?.[0]);
  const [before, after] = [neighbour(-1), neighbour(1)];
  const open = (to: BriefAd | undefined) => {
    if (to === undefined) return;
    view.update({ opened: to.id });
    document.querySelector('#drawer')?.scrollTo(0, 0);
  };
  // The neighbours too, so that a step to them shows them at once.
  const near = [ad, after, before].flatMap((one) => one?.id ?? []);
  const full = view.wholeAds.get(ad.id);
  const card = buildCardAd(full ?? ad);
  const variants = sorted(
    ads.filter((other) => messageOf(other) === messageOf(ad)),
    sort,
  );
  return (
    <Modal
      id="drawer"
      onClose={() => view.update({ opened: undefined })}
      onKeyDown={(key) => open(key === 'ArrowLeft' ? before : key === 'ArrowRight' ? after : undefined)}
    >
      <nav>
        <button type="button" class="icon" aria-label="Previous ad" disabled={!before} onClick={() => open(before)}>
          ‹
        </button>
        <button type="button" class="icon" aria-label="Next ad" disabled={!after} onClick={() => open(after)}>
          ›
        </button>
        <span class="number">
          Ad {view.numberOf(ad)}
          {position !== -1 && ` · ${formatNumber(position + 1)} of ${formatNumber(cards.length)}`}
        </span>
        <CloseButton />
      </nav>
      <LaterFrame key={ad.id} ad={ad} view={view} />
      <Variants view={view} variants={variants} current={ad} onOpen={open} />
      <p class="page" dir="auto">
        {ad.pageName ?? 'Advertiser unknown'}
      </p>
      <h2 id="drawer-title" dir="auto">
        {pickTitle(card)}
      </h2>
      <Actions key={`actions ${ad.id}`} view={view} ids={[ad.id]} />
      {full && <LandingLink view={view} ad={full} />}
      <WholeAds view={view} ids={near} />
      {full && <Copy view={view} ad={full} />}
      {full && <Cards view={view} ad={full} />}
      <RunBar ad={ad} axis={axis} />
      <Labels labels={card.labels ?? []} />
      {full && <Changes ad={full} formats={formats} />}
      <FactList facts={factsOf(ad, full, formats)} />
    </Modal>
  );
}

interface VariantsProps {
  view: View;
  variants: readonly BriefAd[];
  current: BriefAd;
  onOpen(ad: BriefAd): void;
}

const Variants = ({ view, variants, current, onOpen }: VariantsProps) =>
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
            <LaterFrame ad={ad} view={view} />
            <span class="number">{view.numberOf(ad)}</span>
          </button>
        </li>
      ))}
    </ul>
  );

function Copy({ view, ad }: { view: View; ad: FullAd }) {
  const title = pickTitle(buildCardAd(ad));
  const parts = [ad.body, ad.headline === title ? undefined : ad.headline, ad.linkDescription];
  const texts = parts.filter((text) => text !== undefined);
  if (texts.length === 0) return null;
  const copy = () => {
    const done = copyText([title, ...texts].join('\n\n'));
    view.update({ status: done ? 'The text was copied.' : 'This host does not let the board copy.' });
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
function copyText(text: string): boolean {
  let isCopied = false;
  const replace = (event: ClipboardEvent) => {
    event.clipboardData?.setData('text/plain', text);
    event.preventDefault();
    isCopied = true;
  };
  document.addEventListener('copy', replace, { once: true });
  document.execCommand('copy');
  document.removeEventListener('copy', replace);
  return isCopied;
}

const Cards = ({ view, ad }: { view: View; ad: FullAd }) =>
  !ad.cards?.length ? null : (
    <ol class="ad-cards" aria-label="Cards">
      {ad.cards.map(({ title, body }, index) => (
        <li key={`${ad.id} ${index}`}>
          <LaterFrame ad={{ ...ad, headline: title ?? `Card ${index + 1}` }} view={view} card={index + 1} />
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
  if (landingUrl === undefined || !view.can('openLinks')) return null;
  const { hostname } = new URL(landingUrl);
  const open = () =>
    view.host
      .request('ui/open-link', { url: landingUrl })
      .catch((error) => view.update({ status: `${hostname} was not opened: ${problemOf(error)}` }));
  return (
    <button type="button" class="link" onClick={() => void open()}>
      Open {hostname} ↗
    </button>
  );
}

const Changes = ({ ad: { changes }, formats: { formatDay } }: { ad: FullAd; formats: Formats }) =>
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
