import { quoteValue } from '../../service/request.ts';

/*
 * Finds the currency of amounts that are written with a sign or a code, such as `€7.50` and `USD 5`. The currency of an
 * ad usually has a column of its own. An amount with a sign may lack this column, or contradict it.
 */

/** An amount of money in the current record, as the source writes it. */
export interface SourceAmount {
  /** The key or column, e.g. `spend`. */
  key: string;
  /** The value, e.g. `€100 - €199`. */
  text: string;
}

/** Currency signs that one currency uses, with its code. */
const codeBySign = new Map(
  Object.entries({
    ...{ '€': 'EUR', '£': 'GBP', '₹': 'INR', '₩': 'KRW', '₺': 'TRY', '₽': 'RUB', '₴': 'UAH', '₪': 'ILS', '₫': 'VND' },
    ...{ '฿': 'THB', '₱': 'PHP', '₦': 'NGN', '₵': 'GHS', '₡': 'CRC', '₲': 'PYG', '₸': 'KZT', '₼': 'AZN', '₾': 'GEL' },
    ...{ '₮': 'MNT', '₭': 'LAK', '៛': 'KHR', zł: 'PLN', Kč: 'CZK', Ft: 'HUF', lei: 'RON' },
    ...{ US$: 'USD', R$: 'BRL', A$: 'AUD', AU$: 'AUD', C$: 'CAD', CA$: 'CAD', NZ$: 'NZD', HK$: 'HKD', S$: 'SGD' },
    ...{ SG$: 'SGD', NT$: 'TWD', MX$: 'MXN', 'JP¥': 'JPY', 'CN¥': 'CNY' },
  }),
);
/** Currency signs that several currencies use, with their codes. */
const codesBySharedSign = new Map(
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

/** Returns true for a code of ISO 4217, e.g. `CHF`. */
const isCurrencyCode = (text: string): boolean => {
  isoCodes ??= new Set(Intl.supportedValuesOf('currency'));
  return isoCodes.has(text);
};
let isoCodes: Set<string> | undefined;

/** The longest text of an amount in which to look for a currency sign. */
const maxAmountLength = 200;

/** The currency of an amount: its code if the sign means one currency, and all codes that the sign may mean. */
interface AmountCurrency {
  code: string | undefined;
  possibleCodes: readonly string[];
}

/** Finds the currency signs and codes in an amount, and the code in the name of its column, as in `Spend (USD)`. */
function findCurrencies({ key, text }: SourceAmount): AmountCurrency[] {
  const columnCode = /\(([A-Z]{3})\)\s*$/.exec(key)?.[1] ?? '';
  const signs = `${text.slice(0, maxAmountLength)} ${columnCode}`.match(signPattern) ?? [];
  return [...new Set(signs)].map((sign) => {
    const lastSign = sign.slice(-1);
    const code = codeBySign.get(sign) ?? (isCurrencyCode(sign) ? sign : codeBySign.get(lastSign));
    const possibleCodes = codesBySharedSign.get(sign) ?? (code ? [code] : (codesBySharedSign.get(lastSign) ?? []));
    return { code, possibleCodes };
  });
}

/** The fields of an ad or a page with an amount in its currency. */
export const amountFields = ['adSpendMin', 'adSpendMax', 'revenueMin', 'revenueMax'];

/**
 * Sets the currency of an ad or a page if only its amounts state one. If the amounts contradict the currency of the ad,
 * or each other, removes the amounts and keeps them under the names of their columns.
 * @returns the ad, and the problem if there is one
 */
export function resolveCurrency(
  item: Record<string, unknown>,
  amounts: readonly SourceAmount[],
): { item: Record<string, unknown>; problem?: string; isContradictory?: boolean } {
  if (!amountFields.some((field) => item[field] !== undefined)) return { item };
  const statedCurrency = typeof item.currency === 'string' ? item.currency.trim() : '';
  // A column of currencies may contain signs, too.
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
