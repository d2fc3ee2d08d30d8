import * as z from 'zod';
import { createLazyGetter } from '../lazy-getter.ts';
import { formatDay } from './dates.ts';
import { type ApiField, buildFieldSchemas, type DataOf } from './fields.ts';
import { buildFullView, getOtherTypesSchema, moveMismatchesToOtherTypes } from './full-view.ts';
import { formatFramedList, type ListFrame } from './lists.ts';
import { formatCount, formatCreditAmount, roundCredits } from './numbers.ts';
import { joinLines, joinNonEmpty, quote, quoteUnlessWord } from './safe-text.ts';
import { copyFields, isFiniteNumber, isObject, readId, selectViewFields, type UntypedFields } from './view.ts';

/** Schema of the notice that the server adds to every result in demo mode. */
export const createNoticeSchema = () => z.string().optional().describe('Note that the data are demo data.');

/**
 * The fields that all schemas in this file share. `otherTypes` contains the fields from the service that have an
 * unexpected type. `notice` is the note that the server adds in demo mode.
 */
const createCommonFields = () => ({ otherTypes: getOtherTypesSchema(), notice: createNoticeSchema() });

/**
 * Schema of an account, as `get_account` returns it. All schemas in this file keep the field names and values of the
 * API. Fields with null values are omitted from the results.
 */
export const getAccountViewSchema = createLazyGetter(() =>
  z.looseObject({
    userId: z.string().optional().describe('Id of the user.'),
    billingUserId: z.string().optional().describe('Id of the user who pays.'),
    planId: z.string().optional().describe('Plan of the account.'),
    isTeamMember: z.boolean().optional().describe('true for a member of a team.'),
    subscriptionStatus: z.string().optional().describe('Status of the subscription.'),
    ...createCommonFields(),
  }),
);

/** Schema of the user and the account to which an API key belongs, as `whoami` returns them. */
export const getIdentityViewSchema = createLazyGetter(() =>
  z.looseObject({
    authenticated: z.boolean().optional().describe('true if the service accepted the API key.'),
    authSource: z.string().optional().describe('How the caller is authenticated. api_key stands for an API key.'),
    user: z
      .looseObject({
        ...getAccountViewSchema().shape,
        name: z.string().optional().describe('Name of the user.'),
        emailAddress: z.string().optional().describe('Email address of the user.'),
      })
      .meta({ title: 'User', description: 'User that the API key belongs to.' })
      .optional(),
    apiKey: z
      .looseObject({
        id: z.string().optional().describe('Id of the key, which is not secret.'),
        name: z.string().optional().describe('Name of the key.'),
        keyPrefix: z.string().optional().describe('First characters of the key.'),
      })
      .meta({ title: 'Key', description: 'API key of the caller.' })
      .optional(),
    oauthClientId: z.string().optional().describe('OAuth client of the caller. Missing for an API key.'),
    ...createCommonFields(),
  }),
);

/** Schema of the credit balance, the billing period and the usage limits, as `get_credits` returns them. */
export const getCreditsViewSchema = createLazyGetter(() =>
  z.looseObject({
    credits: z.number().optional().describe('Credits left in the billing period.'),
    creditsMax: z.number().optional().describe('Credits of the whole billing period.'),
    periodStart: z.number().optional().describe('Start of the billing period, as Unix time in seconds.'),
    periodEnd: z.number().optional().describe('End of the billing period, as Unix time in seconds.'),
    periodStartsOn: z.string().optional().describe('Day on which the billing period starts.'),
    periodEndsOn: z.string().optional().describe('Day on which the billing period ends.'),
    usageLimit: z
      .looseObject({
        isLimitReached: z.boolean().optional().describe('true if the service refuses paid calls for now.'),
        limitType: z.string().optional().describe('Limit that is reached: none, hourly or daily.'),
        hourlyCredits: z.number().optional().describe('Credits used in the hourly window.'),
        hourlyLimit: z.number().optional().describe('Most credits of the hourly window.'),
        dailyCredits: z.number().optional().describe('Credits used in the daily window.'),
        dailyLimit: z.number().optional().describe('Most credits of the daily window.'),
      })
      .meta({ title: 'UsageLimit', description: 'Usage limits of the service.' })
      .optional(),
    hourlyLeft: z.number().optional().describe('Credits left in the hourly window.'),
    dailyLeft: z.number().optional().describe('Credits left in the daily window.'),
    planId: getAccountViewSchema().shape.planId,
    billingUserId: getAccountViewSchema().shape.billingUserId,
    ...createCommonFields(),
  }),
);

/** The maximum size of an account, an identity or a credit status in a result, in tokens. */
const maxViewTokens = 1500;

/**
 * Converts an account from the API to the form in which results show it. Moves fields with an unexpected type to
 * `otherTypes`.
 */
export const buildAccountView = (account: unknown): UntypedFields =>
  moveMismatchesToOtherTypes(buildFullView(account, maxViewTokens), getAccountViewSchema());
/**
 * Converts an identity from the API to the form in which results show it. Moves fields with an unexpected type to
 * `otherTypes`.
 */
export const buildIdentityView = (identity: unknown): UntypedFields =>
  moveMismatchesToOtherTypes(buildFullView(identity, maxViewTokens), getIdentityViewSchema());

/**
 * Converts a credit status from the API to the form in which results show it. Adds the first and the last day of the
 * billing period, and the remaining credits of the hourly and the daily limit.
 */
export function buildCreditsView(creditStatus: unknown): UntypedFields {
  const view = moveMismatchesToOtherTypes(buildFullView(creditStatus, maxViewTokens), getCreditsViewSchema());
  const lastDay = formatDay(toMilliseconds(view.periodEnd));
  const firstDay = formatDay(toMilliseconds(view.periodStart));
  const usageLimit = isObject(view.usageLimit) ? view.usageLimit : {};
  const remainingHourlyCredits = computeRemaining(usageLimit.hourlyCredits, usageLimit.hourlyLimit);
  const remainingDailyCredits = computeRemaining(usageLimit.dailyCredits, usageLimit.dailyLimit);
  return {
    ...view,
    ...(firstDay && { periodStartsOn: firstDay }),
    ...(lastDay && { periodEndsOn: lastDay }),
    ...(remainingHourlyCredits !== undefined && { hourlyLeft: remainingHourlyCredits }),
    ...(remainingDailyCredits !== undefined && { dailyLeft: remainingDailyCredits }),
  };
}

const toMilliseconds = (unixSeconds: unknown) => (typeof unixSeconds === 'number' ? unixSeconds * 1000 : undefined);

function computeRemaining(usedCredits: unknown, limit: unknown): number | undefined {
  const remaining =
    isFiniteNumber(usedCredits) && isFiniteNumber(limit) ? roundCredits(Math.max(0, limit - usedCredits)) : undefined;
  return isFiniteNumber(remaining) ? remaining : undefined;
}

/** Formats an account as text, with one fact on each line. */
export function formatAccount(account: UntypedFields): string {
  return joinLines([
    formatLine('account of user', account.userId),
    formatLine('billed to user', account.billingUserId),
    formatLine('plan', account.planId, 'none'),
    formatLine('subscription', account.subscriptionStatus, 'none'),
    formatMembership(account.isTeamMember),
    formatOtherTypes(account),
  ]);
}

/** Formats the credit status as text: the balance, the billing period, and the hourly and daily limits. */
export function formatCredits(creditStatus: UntypedFields): string {
  const usageLimit = isObject(creditStatus.usageLimit) ? creditStatus.usageLimit : {};
  const {
    periodStartsOn: firstDay,
    periodEndsOn: lastDay,
    credits: remainingCredits,
    creditsMax: maxCredits,
  } = creditStatus;
  const type = usageLimit.limitType;
  return joinLines([
    remainingCredits === undefined
      ? 'credits left: unknown'
      : `credits left: ${formatValue(remainingCredits)}${maxCredits === undefined ? '' : ` of ${formatValue(maxCredits)}`}`,
    lastDay === undefined
      ? ''
      : `period: ${firstDay === undefined ? '' : `${formatValue(firstDay)} `}to ${formatValue(lastDay)}`,
    formatUsageLimit('hourly', usageLimit.hourlyCredits, usageLimit.hourlyLimit),
    formatUsageLimit('daily', usageLimit.dailyCredits, usageLimit.dailyLimit),
    usageLimit.isLimitReached === true
      ? `usage limit reached${type === undefined ? '' : `: ${formatValue(type)}`}`
      : '',
    usageLimit.isLimitReached === false ? 'usage limit not reached' : '',
    formatLine('plan', creditStatus.planId, 'none'),
    formatLine('billed to user', creditStatus.billingUserId),
    formatOtherTypes(creditStatus),
  ]);
}

/**
 * Formats an hourly or daily usage limit, e.g. `hourly: 320 of 400 used, 80 left`. Returns an empty string if one of
 * the numbers is missing.
 */
function formatUsageLimit(limitName: string, usedCredits: unknown, maxCredits: unknown): string {
  const remainingCredits = computeRemaining(usedCredits, maxCredits);
  return remainingCredits === undefined
    ? ''
    : `${limitName}: ${formatValue(usedCredits)} of ${formatValue(maxCredits)} used, ${formatCreditAmount(remainingCredits)} left`;
}

/** Formats an identity as text: the user, the account and the API key. */
export function formatIdentity(identity: UntypedFields): string {
  const user = isObject(identity.user) ? identity.user : {};
  const apiKey = isObject(identity.apiKey) ? identity.apiKey : {};
  return joinLines([
    identity.authenticated === false ? 'not authenticated' : formatLine('authenticated by', identity.authSource),
    formatLine('name', user.name),
    formatLine('email', user.emailAddress),
    formatAccount(user),
    formatLine('key', apiKey.name),
    formatLine('key id', apiKey.id),
    formatLine('key starts with', apiKey.keyPrefix),
    formatLine('OAuth client', identity.oauthClientId),
    formatOtherTypes(identity),
  ]);
}

const formatLine = (label: string, value: unknown, fallback?: string): string =>
  value === undefined ? (fallback === undefined ? '' : `${label}: ${fallback}`) : `${label}: ${formatValue(value)}`;

const formatOtherTypes = ({ otherTypes }: UntypedFields) => formatLine('of other types', otherTypes);

const formatMembership = (value: unknown) =>
  value === true ? 'a member of a team' : value === false ? 'not a member of a team' : '';

function formatValue(value: unknown): string {
  if (typeof value === 'number') return formatCreditAmount(value);
  if (typeof value === 'boolean') return String(value);
  return typeof value === 'string' ? quoteUnlessWord(value) : quote(JSON.stringify(value) ?? '');
}

/**
 * The fields of a collection (a saved list of ads or pages) that results contain, in this order. A number in `brief` is
 * the maximum length of a text in tokens.
 */
const collectionFields = {
  name: { type: 'text', brief: 40, description: 'Name of the collection.' },
  type: { type: 'text', brief: 12, description: 'Type of the collection, as the service names it.' },
  isDefault: { type: 'boolean', brief: true, description: 'true if the service created the collection.' },
  defaultType: { type: 'text', brief: 12, description: 'Type of the default collection.' },
  isOwner: { type: 'boolean', brief: true, description: 'true if the collection belongs to the caller.' },
  adCount: { type: 'number', brief: true, description: 'Number of ads in the collection.' },
  pageCount: { type: 'number', brief: true, description: 'Number of pages in the collection.' },
} as const satisfies Record<string, ApiField>;
const briefFields = selectViewFields(collectionFields, 'brief');

/** Schema of a collection (a saved list of ads or pages), as results contain it. */
export const getCollectionViewSchema = createLazyGetter(() =>
  z
    .looseObject({ id: z.string().describe('Id of the collection.'), ...buildFieldSchemas(collectionFields) })
    .meta({ title: 'Collection', description: 'A collection of ads or pages.' }),
);
export type CollectionView = DataOf<ReturnType<typeof getCollectionViewSchema>>;

/**
 * Converts a collection from the API to the form in which results show it. Selects the fields in `collectionFields` and
 * shortens long texts.
 */
export function buildCollectionView(collection: object): CollectionView {
  const apiFields = collection as UntypedFields;
  const view: CollectionView = { id: readId(apiFields.id) };
  copyFields(view, apiFields, briefFields);
  return view;
}

/** Formats a collection as one line of text with its name, its id, and the numbers of its ads and pages. */
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

/** Formats a list of collections as text, with the number of collections and the cursor of the next page. */
export const formatCollectionList = ({ items, ...frame }: ListFrame & { items: readonly CollectionView[] }): string =>
  formatFramedList({
    ...frame,
    noun: 'collection',
    shownCount: items.length,
    itemTexts: items
      .map((collection, index) => `${index + (frame.firstNumber ?? 1)}. ${formatCollection(collection)}`)
      .join('\n'),
  });
