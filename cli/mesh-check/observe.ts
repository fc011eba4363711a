/** Asks the server on trial for balances, and tells what is wrong with the answers themselves. */
import { NodeFault, DataApiError } from "../../rpc-client/errors.js";
import { readDecimal, readObject } from "../../rpc-client/answer-fields.js";
import type { BalanceCheck, BalanceEntry } from "./balance-book.js";
import type { BlockId } from "./block-check.js";
import type { FaultList, MeshFaultCode } from "./faults.js";
import { type CurrencyIdentity, parseCurrencyIdentity } from "./identity.js";
import type { BalanceAnswer, BlockName, MeshClient } from "./mesh-client.js";

/** What was answered to one check; undefined where nothing usable was, or nothing was asked. */
export interface Observation {
  readonly check: BalanceCheck;
  readonly before: bigint | undefined;
  readonly after: bigint | undefined;
  readonly byHash: bigint | undefined;
}

/** Asks for all balances of a block's checks: each account once per block, in all currencies. */
export async function observe(
  checks: readonly BalanceCheck[],
  block: BlockId,
  reader: BalanceReader,
): Promise<Observation[]> {
  const byAccount = new Map<string, BalanceCheck[]>();
  for (const check of checks) {
    const { key } = check.entry.account;
    const known = byAccount.get(key);
    if (known === undefined) byAccount.set(key, [check]);
    else known.push(check);
  }
  const groups = await Promise.all(
    [...byAccount.values()].map((group) => observeAccount(group, block, reader)),
  );
  return groups.flat();
}

async function observeAccount(
  checks: readonly BalanceCheck[],
  block: BlockId,
  reader: BalanceReader,
): Promise<Observation[]> {
  const earlier = checks.filter(({ before }) => before !== undefined);
  const active = checks.filter(({ isIdle }) => !isIdle);
  const entries = (list: readonly BalanceCheck[]) => list.map(({ entry }) => entry);
  const [before, after, byHash] = await Promise.all([
    reader.read(entries(earlier), { index: block.index - 1 }, block.index - 1),
    reader.read(entries(checks), { index: block.index }, block.index, block.hash),
    reader.read(entries(active), { hash: block.hash }, block.index, block.hash),
  ]);
  return checks.map((check) => ({
    check,
    before: before.get(check.entry),
    after: after.get(check.entry),
    byHash: byHash.get(check.entry),
  }));
}

/** Balances of one account, checked for the right block and the right currencies. */
export class BalanceReader {
  #count = 0;

  constructor(
    private readonly client: MeshClient,
    private readonly faults: FaultList,
  ) {}

  /** Balances that were answered so far. */
  get count(): number {
    return this.#count;
  }

  /**
   * @param entries all of one account; none asks nothing
   * @param index height of the block that is named
   * @param hash its hash where it is known
   */
  async read(
    entries: readonly BalanceEntry[],
    name: BlockName,
    index: number,
    hash?: string,
  ): Promise<Map<BalanceEntry, bigint>> {
    const [first] = entries;
    if (first === undefined) return new Map();
    const fault = (code: MeshFaultCode, message: string) =>
      this.faults.add({ code, blockIndex: index, account: first.account.name, message });
    const currencies = entries.map(({ currency }) => currency);
    try {
      const answer = await this.client.balance(first.account, currencies, name);
      const { block } = answer;
      if (block.index !== index || (hash !== undefined && block.hash !== hash)) {
        const code = name.hash === undefined ? "BALANCE_AT_BLOCK" : "BALANCE_BY_HASH";
        fault(code, `the balance is of block ${block.index} ${block.hash}, another was asked for`);
      }
      const amounts = parseBalances(answer, currencies);
      this.#count += amounts.length;
      return new Map(entries.flatMap((entry, position) => pair(entry, amounts[position])));
    } catch (error) {
      if (error instanceof DataApiError && !error.retriable) {
        fault("BALANCE_REFUSED", error.message);
      } else if (error instanceof NodeFault && error.code === "BAD_ANSWER") {
        fault("BALANCE_MALFORMED", error.message);
      } else {
        throw error;
      }
      return new Map();
    }
  }
}

function pair(entry: BalanceEntry, units: bigint | undefined): [BalanceEntry, bigint][] {
  return units === undefined ? [] : [[entry, units]];
}

/** Amounts in the order of the currencies; one that is missing or unasked is BAD_ANSWER. */
function parseBalances(
  { balances }: BalanceAnswer,
  currencies: readonly CurrencyIdentity[],
): bigint[] {
  const amounts = new Map<string, bigint>();
  for (const entry of balances) {
    const amount = readObject(entry, "balance");
    const { key } = parseCurrencyIdentity(amount["currency"]);
    if (amounts.has(key)) throw new NodeFault("BAD_ANSWER", "a currency is answered twice");
    amounts.set(key, readDecimal(amount["value"], "balance value"));
  }
  if (amounts.size > currencies.length) {
    throw new NodeFault("BAD_ANSWER", "a currency is answered that was not asked for");
  }
  return currencies.map(({ key, name }) => {
    const amount = amounts.get(key);
    if (amount === undefined) throw new NodeFault("BAD_ANSWER", `${name} is not answered`);
    return amount;
  });
}
