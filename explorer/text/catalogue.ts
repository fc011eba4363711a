/** Words in the reader's language. Every language has the same keys: the types and a test hold that. */
import type { Address } from "../../chain/address.js";
import type { ChainAccounts } from "../../chain/chain-accounts.js";
import { SYSTEM_ADDRESSES, type SystemAccount } from "../../chain/networks.js";
import { fillText, type Language, type TextValues } from "../../web/text/languages.js";
import { type Catalogue, ENGLISH, type TextKey } from "./english.js";
import { GERMAN } from "./german.js";

/** What a page is written with. */
export interface Texts {
  /** Looks a text up and fills it in. */
  (key: TextKey, values?: TextValues): string;
  /** What an account is called that the chain's genesis names; undefined for all others. */
  readonly accountName: (address: Address) => string | undefined;
}

/** The texts of each language. */
export const CATALOGUES: Readonly<Record<Language, Catalogue>> = { en: ENGLISH, de: GERMAN };

const ROLES = Object.keys(SYSTEM_ADDRESSES) as SystemAccount[];

/**
 * The texts of a language.
 * @param accounts of the chain; none has a name while they are not known: at the usual addresses may be
 *   anybody
 */
export function textsOf(language: Language, accounts?: ChainAccounts): Texts {
  const texts = (key: TextKey, values?: TextValues) => fillText(CATALOGUES[language][key], values);
  const accountName = (address: Address) => {
    const role = ROLES.find((one) => accounts?.[one] === address);
    return role === undefined ? undefined : texts(role);
  };
  return Object.assign(texts, { accountName });
}
