import * as z from 'zod';
import { formatDay } from './dates.ts';
import { buildShape, type DataOf, type SentField } from './fields.ts';
import { buildFullView, otherTypesSchema, separateMismatches } from './full-view.ts';
import { frameList, type ListFrame } from './lists.ts';
import { formatCount, formatNumber } from './numbers.ts';
import { joinLines, joinNonEmpty, quote, quoteUnlessWord } from './safe-text.ts';
import { copyFields, type Fields, isNumber, isObject, readId, selectViewFields } from './view.ts';

/** In demo mode a result has a notice of this server: one of the service must be a text, too. */
const besides = { otherTypes: otherTypesSchema, notice: z.string().optional() };

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

export const viewAccount = (account: unknown): Fields =>
  separateMismatches(buildFullView(account, tokens), AccountView);
export const viewIdentity = (identity: unknown): Fields =>
  separateMismatches(buildFullView(identity, tokens), IdentityView);

export function viewCredits(status: unknown): Fields {
  const view = separateMismatches(buildFullView(status, tokens), CreditsView);
  const ends = formatDay(seconds(view.periodEnd));
  const starts = formatDay(seconds(view.periodStart));
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

export function formatAccount(account: Fields): string {
  return joinLines([
    labelText('account of user', account.userId),
    labelText('billed to user', account.billingUserId),
    labelText('plan', account.planId, 'none'),
    labelText('subscription', account.subscriptionStatus, 'none'),
    member(account.isTeamMember),
    othersText(account),
  ]);
}

export function formatCredits(credits: Fields): string {
  const usage = isObject(credits.usageLimit) ? credits.usageLimit : {};
  const { periodStartsOn: starts, periodEndsOn: ends, credits: left, creditsMax: max } = credits;
  const type = usage.limitType;
  return joinLines([
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
    : `${name}: ${valueText(used)} of ${valueText(limit)} used, ${formatNumber(remaining)} left`;
}

export function formatIdentity(identity: Fields): string {
  const user = isObject(identity.user) ? identity.user : {};
  const key = isObject(identity.apiKey) ? identity.apiKey : {};
  return joinLines([
    identity.authenticated === false ? 'not authenticated' : labelText('authenticated by', identity.authSource),
    labelText('name', user.name),
    labelText('email', user.emailAddress),
    formatAccount(user),
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
  if (typeof value === 'number') return formatNumber(value);
  if (typeof value === 'boolean') return String(value);
  return typeof value === 'string' ? quoteUnlessWord(value) : quote(JSON.stringify(value) ?? '');
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
const shownFields = selectViewFields(collectionFields, 'brief');

export const CollectionView = z
  .looseObject({ id: z.string(), ...buildShape(collectionFields) })
  .meta({ title: 'Collection' });
export type CollectionView = DataOf<typeof CollectionView>;

export function viewCollection(collection: object): CollectionView {
  const source = collection as Fields;
  const view: CollectionView = { id: readId(source.id) };
  copyFields(view, source, shownFields);
  return view;
}

export function formatCollection(collection: CollectionView): string {
  const { id, name, type, isDefault, defaultType, isOwner, adCount, pageCount } = collection;
  const facts = [
    adCount !== undefined && formatCount(adCount, 'ad'),
    pageCount !== undefined && formatCount(pageCount, 'page'),
    type !== undefined && `type ${quoteUnlessWord(type)}`,
    isDefault === true && `default${defaultType === undefined ? '' : ` ${quoteUnlessWord(defaultType)}`}`,
    isOwner !== undefined && (isOwner ? 'yours' : "someone else's"),
  ];
  return `${name === undefined ? '' : `${quote(name)} `}${quoteUnlessWord(id)} ${joinNonEmpty(facts, ', ')}`.trimEnd();
}

export const formatCollectionList = ({ items, ...frame }: ListFrame & { items: readonly CollectionView[] }): string =>
  frameList({
    ...frame,
    noun: 'collection',
    shown: items.length,
    body: items
      .map((collection, index) => `${index + (frame.firstNumber ?? 1)}. ${formatCollection(collection)}`)
      .join('\n'),
  });
