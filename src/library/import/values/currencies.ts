import { createLazyGetter } from '../../../lazy-getter.ts';
import { quoteValue } from '../../service/request.ts';

/*
 * Finds the currency of amounts that are written with a sign or a code, such as `€7.50` and `USD 5`. The currency of an
 * ad usually has a column of its own. An amount with a sign may lack this column, or contradict it.
 */

/** An amount of money as the source of an import writes it. */
export interface SourceAmount {
  /** The JSON key or table column of the amount, e.g. `spend`. */
  key: string;
  /** The text of the amount, e.g. `€100 - €199`. */
  text: string;
}

/** The ISO 4217 code for each sign that stands for one currency by default. */
const codeBySign = new Map(
  Object.entries({
    ...{ '€': 'EUR', '£': 'GBP', '₹': 'INR', '₩': 'KRW', '₺': 'TRY', '₽': 'RUB', '₴': 'UAH', '₪': 'ILS', '₫': 'VND' },
    ...{ '฿': 'THB', '₱': 'PHP', '₦': 'NGN', '₵': 'GHS', '₡': 'CRC', '₲': 'PYG', '₸': 'KZT', '₼': 'AZN', '₾': 'GEL' },
    ...{ '₮': 'MNT', '₭': 'LAK', '៛': 'KHR', zł: 'PLN', Kč: 'CZK', Ft: 'HUF', lei: 'RON' },
    ...{ US$: 'USD', R$: 'BRL', A$: 'AUD', AU$: 'AUD', C$: 'CAD', CA$: 'CAD', NZ$: 'NZD', HK$: 'HKD', S$: 'SGD' },
    ...{ SG$: 'SGD', NT$: 'TWD', MX$: 'MXN', 'JP¥': 'JPY', 'CN¥': 'CNY' },
  }),
);
/** All codes that a sign may stand for, if several currencies share the sign. */
const possibleCodesBySharedSign = new Map(
  Object.entries({
    $: 'USD CAD AUD NZD HKD SGD TWD MXN ARS CLP COP UYU DOP BRL JMD TTD BBD BSD BZD FJD GYD LRD NAD SRD'.split(' '),
    '£': 'GBP EGP LBP GIP FKP SHP SDG SYP SSP'.split(' '),
    '¥': ['JPY', 'CNY'],
    '￥': ['JPY', 'CNY'],
    kr: ['SEK', 'NOK', 'DKK', 'ISK'],
    Rs: ['INR', 'PKR', 'LKR', 'NPR', 'MUR', 'SCR'],
    '₨': ['INR', 'PKR', 'LKR', 'NPR', 'MUR', 'SCR'],
    lei: ['RON', 'MDL'],
    '₩': ['KRW', 'KPW'],
  }),
);
const signPattern = /[A-Za-z]{0,3}\p{Sc}|(?<![A-Za-z])[A-Z]{3}(?![A-Za-z])|kr|zł|Rs|Kč|Ft|lei/gu;

/** Returns true if a text is a currency code of ISO 4217, e.g. `CHF`. */
const isCurrencyCode = (text: string): boolean => getIsoCodes().has(text);
const getIsoCodes = createLazyGetter(() => new Set(Intl.supportedValuesOf('currency')));

/** The number of characters at the start of an amount in which to look for currency signs. */
const maxSignSearchLength = 200;

/** The currency that a sign or code in an amount stands for. `code` is undefined if the sign is ambiguous. */
interface AmountCurrency {
  code: string | undefined;
  possibleCodes: readonly string[];
}

/**
 * Finds the currencies that the signs and codes in an amount stand for. Also finds the code in a column name such as
 * `Spend (USD)`.
 */
function findCurrencies({ key, text }: SourceAmount): AmountCurrency[] {
  const columnCode = /\(([A-Z]{3})\)\s*$/.exec(key)?.[1] ?? '';
  const signs = `${text.slice(0, maxSignSearchLength)} ${columnCode}`.match(signPattern) ?? [];
  return [...new Set(signs)].map((sign) => {
    const lastSign = sign.slice(-1);
    const code = codeBySign.get(sign) ?? (isCurrencyCode(sign) ? sign : codeBySign.get(lastSign));
    const possibleCodes =
      possibleCodesBySharedSign.get(sign) ?? (code ? [code] : (possibleCodesBySharedSign.get(lastSign) ?? []));
    return { code, possibleCodes };
  });
}

/** The fields of an ad or page that contain an amount of money. The `currency` field states their currency. */
export const amountFields = ['adSpendMin', 'adSpendMax', 'revenueMin', 'revenueMax'];

/**
 * Sets the currency of an ad or a page if only its amounts state a currency. If the amounts contradict each other or
 * the stated currency, moves the amounts to fields with the names of their source columns.
 * @returns the ad or page, and the problem if there is one
 */
export function resolveCurrency(
  item: Record<string, unknown>,
  amounts: readonly SourceAmount[],
): { item: Record<string, unknown>; problem?: string; isContradictory?: boolean } {
  if (!amountFields.some((field) => item[field] !== undefined)) return { item };
  const statedCurrency = typeof item.currency === 'string' ? item.currency.trim() : '';
  // The currency column may contain a sign instead of a code.
  const statedCode = codeBySign.get(statedCurrency) ?? (statedCurrency.toUpperCase() || undefined);
  const currencies = amounts.flatMap((amount) =>
    findCurrencies(amount).map((currency) => ({ ...currency, ...amount })),
  );
  if (currencies.length === 0)
    return { item: codeBySign.has(statedCurrency) ? { ...item, currency: statedCode } : item };
  const code = statedCode ?? currencies.find((currency) => currency.code !== undefined)?.code;
  if (code === undefined) {
    const [{ key, text, possibleCodes } = { key: '', text: '', possibleCodes: [] }] = currencies;
    const examples = possibleCodes.slice(0, 3).join(', ');
    return {
      item,
      problem: `${key}: the currency of ${quoteValue(text)} is unknown, because its sign may mean ${examples || 'any currency'}; add a column "currency"`,
    };
  }
  const contradiction = currencies.find(({ possibleCodes }) => !possibleCodes.includes(code));
  if (!contradiction)
    return { item: statedCode === undefined || codeBySign.has(statedCurrency) ? { ...item, currency: code } : item };
  const { key, text } = contradiction;
  const amountTexts = amounts
    .filter((amount) => !Object.hasOwn(item, amount.key))
    .map((amount) => [amount.key, amount.text]);
  const itemWithoutAmounts = Object.fromEntries(Object.entries(item).filter(([name]) => !amountFields.includes(name)));
  return {
    item: { ...Object.fromEntries(amountTexts), ...itemWithoutAmounts },
    problem: `${key}: ${quoteValue(text)} contradicts the currency ${code}, so the amount is unknown; correct one of them`,
    isContradictory: true,
  };
}
