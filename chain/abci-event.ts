/**
 * ABCI events of a block: a pure function of the block, its receipts and its balance journal.
 * Where the specification names attributes they come first and in its order, then those that
 * wallets and explorers of SDK chains expect (D5). All values are text; amounts are
 * `<integer>atoken`, accounts bech32, `msg_index` or `mode` is last.
 */
import { type Address, parseBech32, toBech32, toChecksumAddress } from "./address.js";
import type { BalanceChange, BlockJournal } from "./balance-change.js";
import type { Block, BlockTransaction } from "./block.js";
import { inDataOrder, type MinedCosmosTransaction } from "./cosmos/cosmos-result.js";
import type { Log, Receipt } from "./receipt.js";
import type { AbciEvent } from "./consensus/abci-types.js";
import { sdkTransactionHash } from "./consensus/sdk-transaction.js";
import { bytesToHex, type Hash32 } from "./hex.js";
import { eachInSteps, mapInSteps, type Steps } from "./steps/steps.js";
import { BASE_DENOM, type Atoken } from "./units.js";

/** What events follow from: a block with everything that was stored with it. */
export interface EventSource {
  readonly block: Block;
  readonly receipts: readonly Receipt[];
  readonly journal: BlockJournal;
}

/** A mined EVM transaction with what execution made of it. */
export interface ExecutedEvmTransaction extends BlockTransaction {
  /** Place among all transactions of the block: that in `data.txs`. */
  readonly index: number;
  /** Place among the EVM transactions of the block. */
  readonly evmIndex: number;
  readonly receipt: Receipt;
  readonly changes: readonly BalanceChange[];
  /** Events of modules that its code called. */
  readonly moduleEvents?: readonly AbciEvent[];
  /** Whether the fees before it in the block add up to an odd number; asked for an odd fee only. */
  readonly oddFeesBefore: () => boolean;
}

/** A mined transaction of either kind. */
export type ExecutedTransaction = ExecutedEvmTransaction | MinedCosmosTransaction;

/** True for one of the EVM. */
export function isEvmExecuted(executed: ExecutedTransaction): executed is ExecutedEvmTransaction {
  return "receipt" in executed;
}

/** Transactions of a block in memory, of both kinds. */
export function transactionCountOf({ block }: Pick<EventSource, "block">): number {
  return block.transactions.length + (block.cosmos?.length ?? 0);
}

/** Places of a block's Cosmos transactions in `data.txs`, ascending. */
export function cosmosPlacesOf({ cosmos }: Block): readonly number[] {
  return cosmos?.map(({ index }) => index) ?? [];
}

/**
 * The transactions of a block in memory in the order of `data.txs`. Each is made when it is asked for.
 * @throws RangeError where one has no receipt
 */
export function* executedTransactions(source: EventSource): Generator<ExecutedTransaction, void> {
  const { transactions, cosmos } = source.block;
  let sumAtoken = 0n;
  let [index, evmIndex] = [0, 0];
  for (const mined of inDataOrder(transactions, cosmos)) {
    const isOdd = sumAtoken % 2n === 1n;
    const executed =
      "result" in mined
        ? mined
        : { ...mined, index, ...executedEvm(source, evmIndex++), oddFeesBefore: () => isOdd };
    sumAtoken += feeOf(executed);
    index += 1;
    yield executed;
  }
}

function executedEvm({ receipts, journal }: EventSource, evmIndex: number) {
  const receipt = receipts[evmIndex];
  if (receipt === undefined) throw new RangeError("a transaction has no receipt");
  const { changes = [], events } = journal.transactions[evmIndex] ?? {};
  return { evmIndex, receipt, changes, ...moduleEventsOf(events) };
}

/** The member of an executed transaction for events of modules; none for none. */
export function moduleEventsOf(
  events: readonly AbciEvent[] | undefined,
): Pick<ExecutedEvmTransaction, "moduleEvents"> {
  return events === undefined || events.length === 0 ? {} : { moduleEvents: events };
}

/** What a mined transaction paid for being mined, atoken. */
export function feeOf({ changes }: Pick<ExecutedTransaction, "changes">): bigint {
  return changes
    .filter(({ reason }) => reason === "FEE")
    .reduce((sum, { amountAtoken }) => sum + amountAtoken, 0n);
}

/**
 * The burned part of a fee, atoken (D3). Those of a block are split together and an odd atoken is
 * burned, so that of odd fees the first, third ... burn one more than they give.
 * @param oddFeesBefore whether fees before it, in the order of `data.txs`, add up to an odd number
 */
export function burnedOfFee(feeAtoken: Atoken, oddFeesBefore: () => boolean): bigint {
  const isUp = feeAtoken % 2n === 1n && !oddFeesBefore();
  return feeAtoken / 2n + (isUp ? 1n : 0n);
}

/** What becomes of a fee. @param oddFeesBefore as for `burnedOfFee` */
export function feeBurnEvents(feeAtoken: Atoken, oddFeesBefore: () => boolean): AbciEvent[] {
  if (feeAtoken === 0n) return [];
  return [splitEvent(feeAtoken, burnedOfFee(feeAtoken, oddFeesBefore))];
}

function splitEvent(feeAtoken: Atoken, burnedAtoken: Atoken): AbciEvent {
  return event("fee_burn", {
    amount: amountText(feeAtoken),
    burned: amountText(burnedAtoken),
    proposer_reward: amountText(0n),
    treasury: amountText(feeAtoken - burnedAtoken),
  });
}

/** Type URL of the message around an EVM transaction (D20). */
const MESSAGE_ACTION = "/cosmos.evm.vm.v1.MsgEthereumTx";

/** Texts of accounts that are kept, of each kind: making one takes longer than the rest of an event. */
const MAX_KNOWN_TEXTS = 20_000;
const knownTexts = new Map<Address, string>();
const knownChecksums = new Map<Address, string>();

/** Amount as events write it. */
export function amountText(amountAtoken: Atoken): string {
  return `${amountAtoken}${BASE_DENOM}`;
}

/**
 * Events of one transaction, in order; in steps, because it may have tens of thousands of logs. Those of a
 * Cosmos transaction were made as it ran.
 */
export function* transactionEventSteps(executed: ExecutedTransaction): Steps<readonly AbciEvent[]> {
  return isEvmExecuted(executed) ? yield* evmEventSteps(executed) : executed.result.events;
}

/** False where no event of a transaction but its logs can name an account; cheaper than making the events. */
export function mayName(executed: ExecutedTransaction, account: Address): boolean {
  if (!isEvmExecuted(executed) || executed.moduleEvents !== undefined) return true;
  const { tx, from, changes } = executed;
  if (from === account || tx.to === account) return true;
  return changes.some((change) => change.from === account || change.to === account);
}

/** In order: fee, messages, money moved, what modules did, EVM result. */
function* evmEventSteps(executed: ExecutedEvmTransaction): Steps<AbciEvent[]> {
  const { tx, from, evmIndex, receipt, changes, moduleEvents: ofModules = [] } = executed;
  const sender = accountText(from);
  const fees = changes.filter(({ reason }) => reason === "FEE");
  const feeAtoken = feeOf(executed);
  const moves = changes.filter(({ reason }) => reason !== "FEE").flatMap(moneyEvents);
  const hash = { ethereumTxHash: tx.hash };
  const failure = failureOf(executed);
  const message: AbciEvent[] = [
    event("message", { action: MESSAGE_ACTION, sender, module: "evm" }),
    ...moves,
    ...(moves.length === 0 ? [] : [event("message", { module: "bank", sender })]),
    ...ofModules,
    event("ethereum_tx", {
      amount: tx.valueAtoken.toString(),
      ...hash,
      txIndex: evmIndex.toString(),
      txGasUsed: receipt.gasUsed.toString(),
      txHash: upperHex(sdkTransactionHash(tx, from)),
      ...(tx.to === undefined ? {} : { recipient: checksumText(tx.to) }),
      ...(failure === undefined ? {} : { ethereumTxFailed: failure }),
    }),
    ...(yield* logEventSteps(receipt.logs)),
    event("message", {
      module: "evm",
      sender: checksumText(from),
      txType: tx.type.toString(),
    }),
  ];
  return [
    ...fees.flatMap(moneyEvents),
    event("tx", { fee: amountText(feeAtoken), fee_payer: sender }),
    ...feeBurnEvents(feeAtoken, executed.oddFeesBefore),
    event("ethereum_tx", { ...hash, txIndex: evmIndex.toString() }),
    ...message.map((one) => withLast(one, "msg_index", "0")),
  ];
}

/** Why a mined transaction failed, as its outermost call ended; undefined when it did not. */
export function failureOf({ receipt, changes }: ExecutedEvmTransaction): string | undefined {
  if (receipt.status !== 0) return undefined;
  return changes.find(({ tracePath }) => tracePath === "")?.error ?? "execution reverted";
}

/** Events that no transaction made: the split of the fees, the mint, what the modules did. */
export function blockEvents(
  journal: Pick<BlockJournal, "blockChanges" | "moduleEvents">,
): AbciEvent[] {
  const { burnedAtoken, feesAtoken, mintedAtoken } = blockTotals(journal);
  const events = journal.blockChanges.flatMap(moneyEvents);
  if (feesAtoken > 0n) events.push(splitEvent(feesAtoken, burnedAtoken));
  if (mintedAtoken > 0n) events.push(event("mint", { amount: amountText(mintedAtoken) }));
  for (const told of journal.moduleEvents ?? []) events.push(told);
  return events.map((one) => withLast(one, "mode", "EndBlock"));
}

/** Who called modules: a contract may vote and stay as it was. */
export function messageSenders(events: readonly AbciEvent[]): Address[] {
  return events
    .filter(({ type }) => type === "message")
    .flatMap(({ attributes }) => attributes.filter(({ key }) => key === "sender"))
    .map(({ value }) => parseBech32(value));
}

/** What a block can be found by beside the accounts and hashes in it. */
export interface SearchTerms {
  /** Types of the events that occur. */
  readonly types: ReadonlySet<string>;
  /** Amounts in attributes of `<integer>atoken`, atoken; zero is left out. */
  readonly amounts: ReadonlySet<bigint>;
}

/** Terms of a block in steps, from its journal: cheaper than building its events. */
export function* searchTermSteps(source: EventSource): Steps<SearchTerms> {
  const { block, receipts, journal } = source;
  const types = new Set<string>();
  const amounts = new Set<bigint>();
  const addMoves = (changes: readonly BalanceChange[]) => {
    for (const { from, to, amountAtoken, effective } of changes) {
      if (!effective || amountAtoken === 0n) continue;
      amounts.add(amountAtoken);
      for (const type of typesOfMove(from !== undefined, to !== undefined)) types.add(type);
    }
  };
  yield* eachInSteps(journal.transactions, ({ changes, events }) => {
    addMoves(changes);
    if (events !== undefined) addEvents(events, types, amounts);
    const feeAtoken = feeOf({ changes });
    if (feeAtoken > 0n) types.add("fee_burn");
    amounts.add(feeAtoken / 2n).add(feeAtoken - feeAtoken / 2n);
  });
  addMoves(journal.blockChanges);
  addEvents(journal.moduleEvents ?? [], types, amounts);
  for (const { result } of block.cosmos ?? []) addEvents(result.events, types, amounts);
  if (block.transactions.length > 0) for (const type of TRANSACTION_TYPES) types.add(type);
  if (receipts.some(({ logs }) => logs.length > 0)) types.add("tx_log");
  const { feesAtoken, mintedAtoken } = blockTotals(journal);
  if (feesAtoken > 0n) types.add("fee_burn");
  if (mintedAtoken > 0n) types.add("mint");
  amounts.add(feesAtoken).add(mintedAtoken).delete(0n);
  return { types, amounts };
}

/** Terms of events that are stored as they were made. */
function addEvents(events: readonly AbciEvent[], types: Set<string>, amounts: Set<bigint>): void {
  for (const { type, attributes } of events) {
    types.add(type);
    for (const { value } of attributes) {
      const digits = AMOUNT.exec(value)?.[1];
      if (digits !== undefined) amounts.add(BigInt(digits));
    }
  }
}

/** One amount of this chain's denomination, as the search takes it. */
const AMOUNT = new RegExp(`^([1-9][0-9]{0,77})${BASE_DENOM}$`);

/** Types that every EVM transaction's events have. */
const TRANSACTION_TYPES = ["tx", "ethereum_tx", "message"] as const;

function blockTotals({ blockChanges }: Pick<BlockJournal, "blockChanges">) {
  const sum = (reason: BalanceChange["reason"]) =>
    blockChanges
      .filter((change) => change.reason === reason && change.effective)
      .reduce((total, { amountAtoken }) => total + amountAtoken, 0n);
  const burnedAtoken = sum("FEE_BURN");
  const treasuryAtoken = sum("TREASURY");
  const feesAtoken = burnedAtoken + treasuryAtoken;
  return { burnedAtoken, feesAtoken, mintedAtoken: sum("MINT") };
}

function typesOfMove(hasPayer: boolean, hasReceiver: boolean): readonly string[] {
  if (!hasPayer) return ["coin_received", "coinbase"];
  return hasReceiver
    ? ["coin_spent", "coin_received", "transfer", "message"]
    : ["coin_spent", "burn"];
}

/** What the SDK's bank says about one movement; nothing about those that did not happen. */
export function moneyEvents(change: BalanceChange): AbciEvent[] {
  const { from, to, amountAtoken, effective } = change;
  if (!effective || amountAtoken === 0n) return [];
  const amount = amountText(amountAtoken);
  if (from === undefined) {
    if (to === undefined) return [];
    const receiver = accountText(to);
    return [
      event("coin_received", { receiver, amount }),
      event("coinbase", { minter: receiver, amount }),
    ];
  }
  const spender = accountText(from);
  const spent = event("coin_spent", { spender, amount });
  if (to === undefined) return [spent, event("burn", { burner: spender, amount })];
  const recipient = accountText(to);
  return [
    spent,
    event("coin_received", { receiver: recipient, amount }),
    event("transfer", { sender: spender, recipient, amount }),
    event("message", { sender: spender }),
  ];
}

/** Logs as JSON texts; too long and too many to be searched by: that is what topics are for. */
function* logEventSteps(logs: readonly Log[]): Steps<AbciEvent[]> {
  if (logs.length === 0) return [];
  const attributes = yield* mapInSteps(logs, ({ address, topics, data }) => ({
    key: "txLog",
    value: JSON.stringify({ address: checksumText(address), topics, data: bytesToHex(data) }),
    index: false,
  }));
  return [{ type: "tx_log", attributes }];
}

/** An event whose attributes searches find. */
export function event(type: string, values: Readonly<Record<string, string>>): AbciEvent {
  const attributes = Object.entries(values).map(([key, value]) => ({ key, value, index: true }));
  return { type, attributes };
}

/** The event with one attribute more, which stays the last. */
export function withLast({ type, attributes }: AbciEvent, key: string, value: string): AbciEvent {
  return { type, attributes: [...attributes, { key, value, index: true }] };
}

/** Bech32 of an account. */
export function accountText(address: Address): string {
  return keptText(knownTexts, address, toBech32);
}

/** The account in hex, as EIP-55 writes it. */
function checksumText(address: Address): string {
  return keptText(knownChecksums, address, toChecksumAddress);
}

function keptText(
  texts: Map<Address, string>,
  address: Address,
  make: (address: Address) => string,
): string {
  const found = texts.get(address);
  if (found !== undefined) return found;
  const text = make(address);
  if (texts.size >= MAX_KNOWN_TEXTS) texts.clear();
  texts.set(address, text);
  return text;
}

function upperHex(hash: Hash32): string {
  return hash.slice(2).toUpperCase();
}
