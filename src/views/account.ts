import * as z from 'zod';
import { dayOf } from './dates.ts';
import { type DataOf, type SentField, shapeOf } from './fields.ts';
import { asDescribed, fullView, otherTypes } from './full-view.ts';
import { frameList, type ListFrame } from './lists.ts';
import { count, numberText } from './numbers.ts';
import { joinFilled, linesOf, quote, word } from './safe-text.ts';
import { type Fields, idOf, isNumber, isObject, keep, viewTable } from './view.ts';

/** In demo mode a result has a notice of this server: one of the service must be a text, too. */
const besides = { otherTypes, notice: z.string().optional() };

/** Account, credits and identity show the API's fields as they are, without nulls. */
export const AccountView = z.looseObject({
  userId: z.string().optional(),
  billingUserId: z.string().optional().describe('who pays'),
  planId: z.string().optional(),
  isTeamMember: z.boolean().optional(),
  subscriptionStatus: z.string().optional(),
  ...besides,
});

export const IdentityView = z.looseObject({
  authenticated: z.boolean().optional(),
  authSource: z.string().optional(),
  user: z
    .looseObject({ ...AccountView.shape, name: z.string().optional(), emailAddress: z.string().optional() })
    .meta({ title: 'User' })
    .optional(),
  apiKey: z
    .looseObject({
      id: z.string().optional(),
      name: z.string().optional(),
      keyPrefix: z.string().optional().describe('how it begins'),
    })
    .meta({ title: 'Key' })
    .optional(),
  oauthClientId: z.string().optional(),
  ...besides,
});

export const CreditsView = z.looseObject({
  credits: z.number().optional().describe('left in this period'),
  creditsMax: z.number().optional(),
  periodStart: z.number().optional().describe('seconds since 1970'),
  periodEnd: z.number().optional().describe('seconds since 1970'),
  periodStartsOn: z.string().optional().describe('a day'),
  periodEndsOn: z.string().optional().describe('a day'),
  usageLimit: z
    .looseObject({
      isLimitReached: z.boolean().optional(),
      limitType: z.string().optional(),
      hourlyCredits: z.number().optional(),
      hourlyLimit: z.number().optional(),
      dailyCredits: z.number().optional(),
      dailyLimit: z.number().optional(),
    })
    .optional(),
  hourlyLeft: z.number().optional().describe('credits'),
  dailyLeft: z.number().optional().describe('credits'),
  planId: z.string().optional(),
  billingUserId: z.string().optional().describe('who pays'),
  ...besides,
});

const tokens = 1500;

export const viewAccount = (account: unknown): Fields => asDescribed(fullView(account, tokens), AccountView);
export const viewIdentity = (identity: unknown): Fields => asDescribed(fullView(identity, tokens), IdentityView);

export function viewCredits(status: unknown): Fields {
  const view = asDescribed(fullView(status, tokens), CreditsView);
  const ends = dayOf(seconds(view.periodEnd));
  const starts = dayOf(seconds(view.periodStart));
  const usage = isObject(view.usageLimit) ? view.usageLimit : {};
  const hourly = remainingOf(usage.hourlyCredits, usage.hourlyLimit);
  const daily = remainingOf(usage.dailyCredits, usage.dailyLimit);
  return {
    ...view,
    ...(starts && { periodStartsOn: starts }),
    ...(ends && { periodEndsOn: ends }),
    ...(hourly !== undefined && { hourlyLeft: hourly }),
    ...(daily !== undefined && { dailyLeft: daily }),
  };
}

const seconds = (value: unknown) => (typeof value === 'number' ? value * 1000 : undefined);

function remainingOf(used: unknown, limit: unknown): number | undefined {
  const left = isNumber(used) && isNumber(limit) ? Math.max(0, limit - used) : undefined;
  return isNumber(left) ? left : undefined;
}

export function accountText(account: Fields): string {
  return linesOf([
    labelText('account of user', account.userId),
    labelText('billed to user', account.billingUserId),
    labelText('plan', account.planId, 'none'),
    labelText('subscription', account.subscriptionStatus, 'none'),
    member(account.isTeamMember),
    othersText(account),
  ]);
}

export function creditsText(credits: Fields): string {
  const usage = isObject(credits.usageLimit) ? credits.usageLimit : {};
  const { periodStartsOn: starts, periodEndsOn: ends, credits: left, creditsMax: max } = credits;
  const type = usage.limitType;
  return linesOf([
    left === undefined
      ? 'credits left: unknown'
      : `credits left: ${valueText(left)}${max === undefined ? '' : ` of ${valueText(max)}`}`,
    ends === undefined ? '' : `period: ${starts === undefined ? '' : `${valueText(starts)} `}to ${valueText(ends)}`,
    windowText('hourly', usage.hourlyCredits, usage.hourlyLimit),
    windowText('daily', usage.dailyCredits, usage.dailyLimit),
    usage.isLimitReached === true ? `usage limit reached${type === undefined ? '' : `: ${valueText(type)}`}` : '',
    usage.isLimitReached === false ? 'usage limit not reached' : '',
    labelText('plan', credits.planId, 'none'),
    labelText('billed to user', credits.billingUserId),
    othersText(credits),
  ]);
}

/** `hourly: 320 of 400 used, 80 left`. */
function windowText(name: string, used: unknown, limit: unknown): string {
  const remaining = remainingOf(used, limit);
  return remaining === undefined
    ? ''
    : `${name}: ${valueText(used)} of ${valueText(limit)} used, ${numberText(remaining)} left`;
}

export function identityText(identity: Fields): string {
  const user = isObject(identity.user) ? identity.user : {};
  const key = isObject(identity.apiKey) ? identity.apiKey : {};
  return linesOf([
    identity.authenticated === false ? 'not authenticated' : labelText('authenticated by', identity.authSource),
    labelText('name', user.name),
    labelText('email', user.emailAddress),
    accountText(user),
    labelText('key', key.name),
    labelText('key id', key.id),
    labelText('key starts with', key.keyPrefix),
    labelText('OAuth client', identity.oauthClientId),
    othersText(identity),
  ]);
}

const labelText = (label: string, value: unknown, otherwise?: string): string =>
  value === undefined ? (otherwise === undefined ? '' : `${label}: ${otherwise}`) : `${label}: ${valueText(value)}`;

const othersText = ({ otherTypes }: Fields) => labelText('of other types', otherTypes);

const member = (value: unknown) =>
  value === true ? 'a member of a team' : value === false ? 'not a member of a team' : '';

function valueText(value: unknown): string {
  if (typeof value === 'number') return numberText(value);
  if (typeof value === 'boolean') return String(value);
  return typeof value === 'string' ? word(value) : quote(JSON.stringify(value) ?? '');
}

const collectionFields = {
  name: { is: 'text', brief: 40 },
  type: { is: 'text', brief: 12 },
  isDefault: { is: 'flag', brief: true, means: 'the service made it' },
  defaultType: { is: 'text', brief: 12, means: 'which of those' },
  isOwner: { is: 'flag', brief: true, means: 'it is yours' },
  adCount: { is: 'number', brief: true },
  pageCount: { is: 'number', brief: true },
} as const satisfies Record<string, SentField>;
const shownFields = viewTable(collectionFields, 'brief');

export const CollectionView = z
  .looseObject({ id: z.string(), ...shapeOf(collectionFields) })
  .meta({ title: 'Collection' });
export type CollectionView = DataOf<typeof CollectionView>;

export function viewCollection(collection: object): CollectionView {
  const source = collection as Fields;
  const view: CollectionView = { id: idOf(source.id) };
  keep(view, source, shownFields);
  return view;
}

export function collectionText(collection: CollectionView): string {
  const { id, name, type, isDefault, defaultType, isOwner, adCount, pageCount } = collection;
  const facts = [
    adCount !== undefined && count(adCount, 'ad'),
    pageCount !== undefined && count(pageCount, 'page'),
    type !== undefined && `type ${word(type)}`,
    isDefault === true && `default${defaultType === undefined ? '' : ` ${word(defaultType)}`}`,
    isOwner !== undefined && (isOwner ? 'yours' : "someone else's"),
  ];
  return `${name === undefined ? '' : `${quote(name)} `}${word(id)} ${joinFilled(facts, ', ')}`.trimEnd();
}

export const collectionListText = ({ items, ...frame }: ListFrame & { items: readonly CollectionView[] }): string =>
  frameList({
    ...frame,
    noun: 'collection',
    shown: items.length,
    body: items.map((collection, index) => `${index + (frame.from ?? 1)}. ${collectionText(collection)}`).join('\n'),
  });
