/** Accounts and currencies as Rosetta knows them: identity is the whole object, byte for byte. */
import {
  type AnswerObject,
  readCount,
  readObject,
  readOptional,
  readString,
} from "../../rpc-client/answer-fields.js";
import { badAnswer } from "../../rpc-client/errors.js";
import { TOKEN_DECIMALS, TOKEN_SYMBOL } from "../../chain/units.js";

/** An account or a currency: the object as it came, its key, and a name for people. */
export interface Identity {
  readonly value: AnswerObject;
  /** JSON with sorted keys: equal keys mean equal identity. */
  readonly key: string;
  readonly name: string;
}

/** A currency with what is needed to ask a node for it. */
export interface CurrencyIdentity extends Identity {
  /** The ERC-20's contract; undefined for the native token and for currencies of other kinds. */
  readonly contractAddress: string | undefined;
  readonly isNative: boolean;
}

/** Untrusted `AccountIdentifier`. Throws BAD_ANSWER. */
export function parseAccountIdentity(value: unknown): Identity {
  const account = readObject(value, "account");
  const address = readFilled(account["address"], "account address");
  const sub = readOptional(account["sub_account"], "sub_account", readObject);
  if (sub === undefined) return { value: account, key: canonicalJson(account), name: address };
  const subAddress = readFilled(sub["address"], "sub_account address");
  return { value: account, key: canonicalJson(account), name: `${address} (${subAddress})` };
}

/** Untrusted `Currency`. Throws BAD_ANSWER. */
export function parseCurrencyIdentity(value: unknown): CurrencyIdentity {
  const currency = readObject(value, "currency");
  const symbol = readFilled(currency["symbol"], "currency symbol");
  const decimals = readCount(currency["decimals"], "currency decimals");
  const metadata = readOptional(currency["metadata"], "currency metadata", readObject);
  const contract = readOptional(metadata?.["contractAddress"], "contractAddress", readString);
  const isPlain = metadata === undefined || Object.keys(metadata).length === 0;
  return {
    value: currency,
    key: canonicalJson(currency),
    name: contract === undefined ? symbol : `${symbol} ${contract}`,
    contractAddress: contract?.toLowerCase(),
    isNative: isPlain && symbol === TOKEN_SYMBOL && decimals === TOKEN_DECIMALS,
  };
}

/** JSON whose keys are sorted at every depth. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const entries = Object.entries(value).toSorted(([left], [right]) => (left < right ? -1 : 1));
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`).join(",")}}`;
}

function readFilled(value: unknown, name: string): string {
  const text = readString(value, name);
  if (text === "") throw badAnswer(`${name} is empty`);
  return text;
}
