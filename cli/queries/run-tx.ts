/** `causeway query tx`: one transaction, and what it means that none has taken a sequence. */
import { type Address, toBech32 } from "../../chain/address.js";
import { loadDescriptors } from "../../runtime/files/descriptor-set.js";
import type { CommandContext } from "../command-context.js";
import { CliError } from "../errors.js";
import { TxNode } from "../transactions/tx-node.js";
import { accountIn } from "../transactions/values.js";
import { queryNode, type QueryTarget } from "./node-query.js";
import { memberOf, print, type QueryFlags, targetOf, textFlag } from "./run.js";

/** What a transaction is looked for by. */
interface Wanted {
  /** Conditions in CometBFT's grammar. */
  readonly query: string;
  /** What is looked for, in the words of a refusal. */
  readonly what: string;
  readonly signed?: { readonly account: Address; readonly sequence: bigint };
}

/**
 * `query tx`: a transaction's `TxResponse`, by either hash, by the sequence of its account or by its
 * signatures, as `--type` says (x/auth `client/cli/query.go`).
 * @throws USAGE, CLIENT_FAILED
 */
export async function runQueryTx(
  context: CommandContext,
  given: string,
  flags: QueryFlags,
): Promise<number> {
  const type = textFlag(flags, "type") ?? "hash";
  const wanted = type === "hash" ? undefined : wantedBy(given, type);
  const target = await targetOf(context, flags);
  const response =
    wanted === undefined
      ? await transactionByHash(given, target)
      : await transactionByEvent(wanted, target);
  print(context, flags, response);
  return 0;
}

async function transactionByHash(hash: string, target: QueryTarget) {
  const path = "/cosmos.tx.v1beta1.Service/GetTx";
  return memberOf(await queryNode(loadDescriptors(), path, { hash }, target), "tx_response");
}

/** The one transaction with a sequence or with signatures. Throws CLIENT_FAILED. */
async function transactionByEvent(wanted: Wanted, target: QueryTarget): Promise<unknown> {
  const { signed, what } = wanted;
  const found = await twoOf(wanted, target);
  if (found.length === 1) return found[0];
  const text = `found ${found.length === 0 ? "no" : "several"} txs matching given ${what}`;
  if (signed === undefined || found.length > 0) throw new CliError("CLIENT_FAILED", text);
  // All of one height: another node behind the same URL may be behind, and then refuses.
  const asked = new TxNode(loadDescriptors(), target);
  const height = target.height > 0 ? target.height : await asked.latestHeight();
  const then = { ...target, height };
  const askedThen = new TxNode(loadDescriptors(), then);
  if (await askedThen.isContract(signed.account)) {
    throw new CliError("CLIENT_FAILED", `${text}: ${contractText(signed.account, height)}`);
  }
  const next = await askedThen.sequence(signed.account);
  const place = `at height ${height} the account's next one was ${next}`;
  if (next <= signed.sequence) {
    const open = "one that waits in a pool, or that is sent again, may still be mined";
    throw new CliError("CLIENT_FAILED", `${text}: ${place}, so ${open}`);
  }
  // A block may have taken it behind the first search.
  const [late] = await twoOf(wanted, then);
  if (late !== undefined) return late;
  const closed = `an Ethereum transaction took sequence ${signed.sequence}`;
  const sense = "no Cosmos transaction of it was mined, and none will be";
  throw new CliError("CLIENT_FAILED", `${text}: ${closed} (${place}), ${sense}`);
}

/** Whoever looks for a contract's sequence is told that nothing is to be waited for. */
function contractText(account: Address, height: number): string {
  const what = `at height ${height} ${toBech32(account)} is a contract`;
  const sense = "and contracts sign no transactions";
  return `${what}, ${sense}; its sequence counts the contracts that it has made, from 1`;
}

/** What a search finds, two at most. */
async function twoOf({ query }: Wanted, target: QueryTarget): Promise<readonly unknown[]> {
  const path = "/cosmos.tx.v1beta1.Service/GetTxsEvent";
  const answer = await queryNode(loadDescriptors(), path, { query, limit: "2" }, target);
  const found = memberOf(answer, "tx_responses");
  return Array.isArray(found) ? found : [];
}

/** Throws USAGE. */
function wantedBy(given: string, type: string): Wanted {
  const [, account, digits] = /^(\w+)\/([0-9]{1,20})$/.exec(given) ?? [];
  if (type === "acc_seq" && account !== undefined && digits !== undefined) {
    const signed = { account: accountIn(account, "ADDRESS"), sequence: BigInt(digits) };
    // Events have one spelling: whoever types another one would be told that there is no such transaction.
    const query = `tx.acc_seq='${toBech32(signed.account)}/${signed.sequence}'`;
    return { query, what: "address and sequence combination", signed };
  }
  if (type === "signature" && /^[A-Za-z0-9+/=]+(,[A-Za-z0-9+/=]+)*$/.test(given)) {
    const conditions = given.split(",").map((signature) => `tx.signature='${signature}'`);
    return { query: conditions.join(" AND "), what: "signatures" };
  }
  const forms = "--type=hash HASH, --type=acc_seq ADDRESS/SEQUENCE, --type=signature BASE64,...";
  throw new CliError("USAGE", `query tx takes ${forms}.`);
}
