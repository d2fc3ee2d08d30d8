import * as z from 'zod';
import { formatDay } from './dates.ts';
import { buildShape, type DataOf, type SentField } from './fields.ts';
import { buildFullView, otherTypesSchema, separateMismatches } from './full-view.ts';
import { frameList, type ListFrame } from './lists.ts';
import { formatCount, formatNumber } from './numbers.ts';
import { joinLines, joinNonEmpty, quote, quoteUnlessWord } from './safe-text.ts';
import { copyFields, type Fields, isNumber, isObject, readId, selectViewFields } from './view.ts';

/**
 * Fields that every view of this file may have. In demo mode, the server adds `notice`, so the schema requires a text
 * there, also if the service sends a field of this name.
 */
const commonFields = { otherTypes: otherTypesSchema, notice: z.string().optional() };

/** The account as tools return it. Account, credits and identity show the API's fields as they are, without nulls. */
export const AccountView = z.looseObject({
  userId: z.string().optional(),
  billingUserId: z.string().optional().describe('who pays'),
  planId: z.string().optional(),
  isTeamMember: z.boolean().optional(),
  subscriptionStatus: z.string().optional(),
  ...commonFields,
});

/** The identity behind an API key, as `whoami` returns it. */
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
  ...commonFields,
});

/** The credit status, as `get_credits` returns it. */
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
  ...commonFields,
});

/** The most tokens of each view. */
const maxViewTokens = 1500;

/** Builds the view of an account. */
export const viewAccount = (account: unknown): Fields =>
  separateMismatches(buildFullView(account, maxViewTokens), AccountView);
/** Builds the view of an identity. */
export const viewIdentity = (identity: unknown): Fields =>
  separateMismatches(buildFullView(identity, maxViewTokens), IdentityView);

/** Builds the view of the credit status. Adds the days of the period and the credits left in each usage window. */
export function viewCredits(status: unknown): Fields {
  const view = separateMismatches(buildFullView(status, maxViewTokens), CreditsView);
  const ends = formatDay(toMilliseconds(view.periodEnd));
  const starts = formatDay(toMilliseconds(view.periodStart));
  const usage = isObject(view.usageLimit) ? view.usageLimit : {};
  const hourly = computeRemaining(usage.hourlyCredits, usage.hourlyLimit);
  const daily = computeRemaining(usage.dailyCredits, usage.dailyLimit);
  return {
    ...view,
    ...(starts && { periodStartsOn: starts }),
    ...(ends && { periodEndsOn: ends }),
    ...(hourly !== undefined && { hourlyLeft: hourly }),
    ...(daily !== undefined && { dailyLeft: daily }),
  };
}

const toMilliseconds = (value: unknown) => (typeof value === 'number' ? value * 1000 : undefined);

function computeRemaining(used: unknown, limit: unknown): number | undefined {
  const remaining = isNumber(used) && isNumber(limit) ? Math.max(0, limit - used) : undefined;
  return isNumber(remaining) ? remaining : undefined;
}

/** Formats an account as text. */
export function formatAccount(account: Fields): string {
  return joinLines([
    formatLine('account of user', account.userId),
    formatLine('billed to user', account.billingUserId),
    formatLine('plan', account.planId, 'none'),
    formatLine('subscription', account.subscriptionStatus, 'none'),
    formatMembership(account.isTeamMember),
    formatOtherTypes(account),
  ]);
}

/** Formats the credit status as text. */
export function formatCredits(credits: Fields): string {
  const usage = isObject(credits.usageLimit) ? credits.usageLimit : {};
  const { periodStartsOn: starts, periodEndsOn: ends, credits: left, creditsMax: max } = credits;
  const type = usage.limitType;
  return joinLines([
    left === undefined
      ? 'credits left: unknown'
      : `credits left: ${formatValue(left)}${max === undefined ? '' : ` of ${formatValue(max)}`}`,
    ends === undefined ? '' : `period: ${starts === undefined ? '' : `${formatValue(starts)} `}to ${formatValue(ends)}`,
    formatUsageWindow('hourly', usage.hourlyCredits, usage.hourlyLimit),
    formatUsageWindow('daily', usage.dailyCredits, usage.dailyLimit),
    usage.isLimitReached === true ? `usage limit reached${type === undefined ? '' : `: ${formatValue(type)}`}` : '',
    usage.isLimitReached === false ? 'usage limit not reached' : '',
    formatLine('plan', credits.planId, 'none'),
    formatLine('billed to user', credits.billingUserId),
    formatOtherTypes(credits),
  ]);
}

/**
 * Formats a usage window, for example `hourly: 320 of 400 used, 80 left`. Returns an empty text if a number is missing.
 */
function formatUsageWindow(name: string, used: unknown, limit: unknown): string {
  const remaining = computeRemaining(used, limit);
  return remaining === undefined
    ? ''
    : `${name}: ${formatValue(used)} of ${formatValue(limit)} used, ${formatNumber(remaining)} left`;
}

/** Formats an identity as text. */
export function formatIdentity(identity: Fields): string {
  const user = isObject(identity.user) ? identity.user : {};
  const key = isObject(identity.apiKey) ? identity.apiKey : {};
  return joinLines([
    identity.authenticated === false ? 'not authenticated' : formatLine('authenticated by', identity.authSource),
    formatLine('name', user.name),
    formatLine('email', user.emailAddress),
    formatAccount(user),
    formatLine('key', key.name),
    formatLine('key id', key.id),
    formatLine('key starts with', key.keyPrefix),
    formatLine('OAuth client', identity.oauthClientId),
    formatOtherTypes(identity),
  ]);
}

const formatLine = (label: string, value: unknown, fallback?: string): string =>
  value === undefined ? (fallback === undefined ? '' : `${label}: ${fallback}`) : `${label}: ${formatValue(value)}`;

const formatOtherTypes = ({ otherTypes }: Fields) => formatLine('of other types', otherTypes);

const formatMembership = (value: unknown) =>
  value === true ? 'a member of a team' : value === false ? 'not a member of a team' : '';

function formatValue(value: unknown): string {
  if (typeof value === 'number') return formatNumber(value);
  if (typeof value === 'boolean') return String(value);
  return typeof value === 'string' ? quoteUnlessWord(value) : quote(JSON.stringify(value) ?? '');
}

/** The fields of a collection that views show. */
const collectionFields = {
  name: { type: 'text', brief: 40 },
  type: { type: 'text', brief: 12 },
  isDefault: { type: 'flag', brief: true, meaning: 'the service made it' },
  defaultType: { type: 'text', brief: 12, meaning: 'kind of default collection' },
  isOwner: { type: 'flag', brief: true, meaning: 'it is yours' },
  adCount: { type: 'number', brief: true },
  pageCount: { type: 'number', brief: true },
} as const satisfies Record<string, SentField>;
const briefFields = selectViewFields(collectionFields, 'brief');

/** A collection as tools return it. */
export const CollectionView = z
  .looseObject({ id: z.string(), ...buildShape(collectionFields) })
  .meta({ title: 'Collection' });
export type CollectionView = DataOf<typeof CollectionView>;

/** Builds the view of a collection. */
export function viewCollection(collection: object): CollectionView {
  const source = collection as Fields;
  const view: CollectionView = { id: readId(source.id) };
  copyFields(view, source, briefFields);
  return view;
}

/** Formats a collection as one line. */
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

/** Formats a list of collections. */
export const formatCollectionList = ({ items, ...frame }: ListFrame & { items: readonly CollectionView[] }): string =>
  frameList({
    ...frame,
    noun: 'collection',
    shown: items.length,
    body: items
      .map((collection, index) => `${index + (frame.firstNumber ?? 1)}. ${formatCollection(collection)}`)
      .join('\n'),
  });
