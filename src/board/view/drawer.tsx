import { Labels, titleOf } from '../../ui/ad-card.tsx';
import { Facts } from '../../ui/bars.tsx';
import { dayText, numberText } from '../../ui/formats.ts';
import { columnTitle } from '../../views/column-title.ts';
import type { BoardAd } from '../payload.ts';
import { messageOf } from './finding.ts';
import { RunBar } from './list.tsx';
import { CloseButton, Modal, WholeAds, wholeAd } from './modal.tsx';
import { LaterFrame } from './pictures.tsx';
import { Actions } from './selection.tsx';
import { problemOf, sorted, type View } from './state.ts';
import { cardOf, factsOf } from './words.ts';

export function Drawer({ view, ad }: { view: View; ad: BoardAd }) {
  const { cards, axis, ads, sort } = view.state;
  // An ad that is a variant of a card's has the position of the card.
  const position = cards.findIndex((group) => group.some(({ id }) => id === ad.id));
  const neighbour = (step: number) => (position === -1 ? undefined : cards[position + step]?.[0]);
  const [before, after] = [neighbour(-1), neighbour(1)];
  const open = (to: BoardAd | undefined) => {
    if (to === undefined) return;
    view.update({ opened: to.id });
    document.querySelector('#drawer')?.scrollTo(0, 0);
  };
  // The neighbours too, so that a step to them shows them at once.
  const near = [ad, after, before].flatMap((one) => one?.id ?? []);
  const wholeAdView = wholeAd(view, ad);
  const card = cardOf(wholeAdView);
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
          {position !== -1 && ` · ${numberText(position + 1)} of ${numberText(cards.length)}`}
        </span>
        <CloseButton />
      </nav>
      <LaterFrame key={ad.id} ad={ad} pictures={view.pictures} />
      <Variants view={view} variants={variants} current={ad} onOpen={open} />
      <p class="page" dir="auto">
        {ad.pageName ?? 'Advertiser unknown'}
      </p>
      <h2 id="drawer-title" dir="auto">
        {titleOf(card)}
      </h2>
      <Actions key={`actions ${ad.id}`} view={view} ids={[ad.id]} />
      <LandingLink view={view} ad={wholeAdView} />
      <WholeAds view={view} ids={near} />
      <Copy view={view} ad={wholeAdView} />
      <Cards view={view} ad={wholeAdView} />
      <RunBar ad={ad} axis={axis} />
      <Labels labels={card.labels ?? []} />
      <Changes ad={wholeAdView} />
      <Facts facts={factsOf(wholeAdView)} />
    </Modal>
  );
}

interface VariantsProps {
  view: View;
  variants: readonly BoardAd[];
  current: BoardAd;
  onOpen(ad: BoardAd): void;
}

const Variants = ({ view, variants, current, onOpen }: VariantsProps) =>
  variants.length < 2 ? null : (
    <ul class="strip" aria-label={`${numberText(variants.length)} variants`}>
      {variants.slice(0, 60).map((ad) => (
        <li key={ad.id}>
          <button
            type="button"
            aria-current={ad.id === current.id ? 'true' : undefined}
            title={titleOf(cardOf(ad))}
            onClick={() => onOpen(ad)}
          >
            <LaterFrame ad={ad} pictures={view.pictures} />
            <span class="number">{view.numberOf(ad)}</span>
          </button>
        </li>
      ))}
    </ul>
  );

function Copy({ view, ad }: { view: View; ad: BoardAd }) {
  const title = titleOf(cardOf(ad));
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

const Cards = ({ view, ad }: { view: View; ad: BoardAd }) =>
  !view.wholeAds.has(ad.id) || !ad.cards?.length ? null : (
    <ol class="ad-cards" aria-label="Cards">
      {ad.cards.map(({ title, body }, index) => (
        <li key={`${ad.id} ${index}`}>
          <LaterFrame
            ad={{ ...ad, headline: title ?? `Card ${index + 1}` }}
            pictures={view.pictures}
            card={index + 1}
          />
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

function LandingLink({ view, ad: { landingUrl } }: { view: View; ad: BoardAd }) {
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

const Changes = ({ ad: { changes = [] } }: { ad: BoardAd }) =>
  changes.length === 0 ? null : (
    <section>
      <h3>What changed</h3>
      <ul class="changes">
        {changes.map(({ at, field, from, to }) => (
          <li>
            <span class="number">
              {dayText(at)} · {columnTitle(field)}
            </span>
            <del dir="auto">{from}</del> <ins dir="auto">{to}</ins>
          </li>
        ))}
      </ul>
    </section>
  );
