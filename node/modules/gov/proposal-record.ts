/**
 * Proposals as the gov account's storage has them. Layout (every member a word):
 *
 *  0 number of proposals made | 1 mapping id -> proposal (below)
 *  2 array of the ids that wait for deposits or votes, 3 their places
 *  4 soonest end of one of them (ms), 0 where none waits | 5 deposits that are held (atoken)
 *  6 mapping proposer -> number of its proposals that wait
 *  7 id of the proposal whose votes are counted over several blocks, 0 where none is
 *
 * A proposal: 0 status, 1 proposer, 2 submitted, 3 end of the deposits, 4 begin and 5 end of the
 * voting (ms), 6 its deposits (atoken), 7 1 when it is expedited, 8 to 11 result (yes, abstain, no,
 * veto; atoken), 12 title, 13 summary, 14 metadata, 15 why it failed, 16 messages (protobuf: field
 * 1 repeated, `Any`), 17 set of depositors, 19 mapping depositor -> atoken, 20 set of voters, 22
 * mapping voter -> vote (0 weights, 64 bits each, yes lowest; 1 metadata), 23 voters counted so
 * far, 24 to 28 what they came to, 29 mapping expedited -> mapping operator -> shares counted.
 *
 * Ids count from 1. Votes stay when a proposal is over, so that anybody can see who decided it.
 */
import type { Address } from "../../../chain/address.js";
import { ProtoReader, ProtoWriter } from "../../../chain/protobuf/wire.js";
import { type AnyMessage, decodeAny, encodeAny } from "../../../chain/cosmos/field-schema.js";
import { MAX_PROPOSAL_MESSAGES } from "../../../chain/cosmos/governance-schemas.js";
import { schemaOf } from "../../../chain/cosmos/message-schemas.js";
import type { Atoken } from "../../../chain/units.js";
import type { JournaledState } from "../../state/journaled-state.js";
import { addressWord, mapSlot, StoredSet, SystemStorage, wordAddress } from "../system-storage.js";

/** `cosmos.gov.v1.ProposalStatus`. */
export const PROPOSAL_STATUS = {
  deposit: 1,
  voting: 2,
  passed: 3,
  rejected: 4,
  failed: 5,
} as const;

/** One of `PROPOSAL_STATUS`. */
export type ProposalStatus = (typeof PROPOSAL_STATUS)[keyof typeof PROPOSAL_STATUS];

/** What can be voted, in the order of `cosmos.gov.v1.VoteOption` from 1 on. */
export const VOTE_OPTIONS = ["yes", "abstain", "no", "veto"] as const;

/** One of `VOTE_OPTIONS`. */
export type VoteOption = (typeof VOTE_OPTIONS)[number];

/** A number for each option. */
export type ByOption = Readonly<Record<VoteOption, bigint>>;

/** A vote: the weights of its options in 10^-18, together 1. */
export interface Vote {
  readonly voter: Address;
  readonly weights: ByOption;
  readonly metadata: string;
}

/** A deposit of one account. */
export interface Deposit {
  readonly depositor: Address;
  readonly amountAtoken: Atoken;
}

/** What counting has come to, 10^-18 atoken. */
export interface CountedVotes {
  /** Voters that are counted. */
  readonly voters: number;
  readonly sums: ByOption;
  readonly total: bigint;
}

const MADE = 0n;
const PROPOSALS = 1n;
const WAITING = 2n;
const SOONEST_END = 4n;
const HELD = 5n;
const WAITING_OF_PROPOSER = 6n;
const COUNTING = 7n;

const RESULT = 8;
const TEXTS = { title: 12, summary: 13, metadata: 14, failedReason: 15 } as const;
const MESSAGES = 16;
const DEPOSITORS = 17;
const DEPOSITS = 19;
const VOTERS = 20;
const VOTES = 22;
const COUNTED = 23;
const COUNTED_SHARES = 29;

const WEIGHT_BITS = 64n;
const WEIGHT_MASK = (1n << WEIGHT_BITS) - 1n;

/** One proposal; every read and write is one of its slots. */
export class ProposalRecord {
  private readonly base: bigint;

  constructor(
    private readonly storage: SystemStorage,
    readonly id: bigint,
  ) {
    this.base = mapSlot(PROPOSALS, id);
  }

  /** False for ids that were never given, and for proposals that were dropped or cancelled. */
  get exists(): boolean {
    return this.word(0) !== 0n;
  }

  get status(): ProposalStatus {
    return Number(this.word(0)) as ProposalStatus;
  }

  set status(status: ProposalStatus) {
    this.setWord(0, BigInt(status));
  }

  get proposer(): Address {
    return wordAddress(this.word(1));
  }

  get submitMs(): number {
    return Number(this.word(2));
  }

  get depositEndMs(): number {
    return Number(this.word(3));
  }

  /** 0 before the voting. */
  get votingStartMs(): number {
    return Number(this.word(4));
  }

  /** 0 before the voting. */
  get votingEndMs(): number {
    return Number(this.word(5));
  }

  /** When what it waits for is over. */
  get endMs(): number {
    return this.status === PROPOSAL_STATUS.deposit ? this.depositEndMs : this.votingEndMs;
  }

  /** All deposits that were made; what is held of them is given back when it ends. */
  get totalDepositAtoken(): Atoken {
    return this.word(6);
  }

  get isExpedited(): boolean {
    return this.word(7) === 1n;
  }

  set isExpedited(isExpedited: boolean) {
    this.setWord(7, isExpedited ? 1n : 0n);
  }

  /** Of a proposal that was decided, atoken. */
  get result(): ByOption {
    return this.options(RESULT);
  }

  set result(result: ByOption) {
    this.setOptions(RESULT, result);
  }

  get title(): string {
    return this.text(TEXTS.title);
  }

  get summary(): string {
    return this.text(TEXTS.summary);
  }

  get metadata(): string {
    return this.text(TEXTS.metadata);
  }

  get failedReason(): string {
    return this.text(TEXTS.failedReason);
  }

  set failedReason(reason: string) {
    this.setText(TEXTS.failedReason, reason);
  }

  /** What the gov account does when it passes. */
  get messages(): readonly AnyMessage[] {
    const bytes = this.storage.bytes(this.base + BigInt(MESSAGES));
    const reader = new ProtoReader(bytes, [], { 1: MAX_PROPOSAL_MESSAGES });
    return reader.repeated(1).map((item) => decodeAny(item, schemaOf));
  }

  /** Begins the voting. */
  openVoting(startMs: number, endMs: number): void {
    this.status = PROPOSAL_STATUS.voting;
    this.setWord(4, BigInt(startMs));
    this.setWord(5, BigInt(endMs));
  }

  /** Writes what a new proposal is. */
  create(made: NewProposal): void {
    const { proposer, submitMs, depositEndMs, title, summary, metadata, isExpedited } = made;
    this.status = PROPOSAL_STATUS.deposit;
    this.setWord(1, addressWord(proposer));
    this.setWord(2, BigInt(submitMs));
    this.setWord(3, BigInt(depositEndMs));
    this.isExpedited = isExpedited;
    this.setText(TEXTS.title, title);
    this.setText(TEXTS.summary, summary);
    this.setText(TEXTS.metadata, metadata);
    this.storage.setBytes(this.base + BigInt(MESSAGES), made.messageBytes);
  }

  /** Forgets it; its deposits are gone already. */
  remove(): void {
    for (let place = 0; place < TEXTS.title; place++) this.setWord(place, 0n);
    for (const place of Object.values(TEXTS)) this.setText(place, "");
    this.storage.setBytes(this.base + BigInt(MESSAGES), new Uint8Array(0));
  }

  /** How many accounts have deposits that are held. */
  get depositorCount(): number {
    return this.set(DEPOSITORS).size;
  }

  /** What an account has deposited and not got back, atoken. */
  depositOf(depositor: Address): bigint {
    return this.storage.word(this.mapped(DEPOSITS, depositor));
  }

  /** Deposits that are held, from a place on. */
  deposits(from = 0, most = Number.MAX_SAFE_INTEGER): Deposit[] {
    return this.set(DEPOSITORS)
      .slice(from, most)
      .map((word) => wordAddress(word))
      .map((depositor) => ({ depositor, amountAtoken: this.depositOf(depositor) }));
  }

  /** Adds to what an account has deposited. */
  addDeposit(depositor: Address, amountAtoken: Atoken): void {
    this.storage.setWord(
      this.mapped(DEPOSITS, depositor),
      this.depositOf(depositor) + amountAtoken,
    );
    this.set(DEPOSITORS).add(addressWord(depositor));
    this.setWord(6, this.totalDepositAtoken + amountAtoken);
  }

  /** Forgets who has deposited; whoever calls this moves the coins. */
  takeDeposits(): Deposit[] {
    const deposits = this.deposits();
    for (const { depositor } of deposits) {
      this.storage.setWord(this.mapped(DEPOSITS, depositor), 0n);
    }
    this.set(DEPOSITORS).clear();
    return deposits;
  }

  get voterCount(): number {
    return this.set(VOTERS).size;
  }

  /** Voters in the order of their first votes, from a place on. */
  voters(from: number, most: number): Address[] {
    return this.set(VOTERS).slice(from, most).map(wordAddress);
  }

  /** An account's vote; undefined where it has not voted. */
  vote(voter: Address): Vote | undefined {
    const slot = this.mapped(VOTES, voter);
    const packed = this.storage.word(slot);
    if (packed === 0n) return undefined;
    const entries = VOTE_OPTIONS.map((option, index) => {
      return [option, (packed >> (WEIGHT_BITS * BigInt(index))) & WEIGHT_MASK] as const;
    });
    const weights = Object.fromEntries(entries) as Record<VoteOption, bigint>;
    return { voter, weights, metadata: this.storage.text(slot + 1n) };
  }

  /** Sets an account's vote, in place of one that it gave before. */
  setVote({ voter, weights, metadata }: Vote): void {
    const slot = this.mapped(VOTES, voter);
    const packed = VOTE_OPTIONS.reduce(
      (sum, option, index) => sum + (weights[option] << (WEIGHT_BITS * BigInt(index))),
      0n,
    );
    this.storage.setWord(slot, packed);
    this.storage.setText(slot + 1n, metadata);
    this.set(VOTERS).add(addressWord(voter));
  }

  /** Counting that a block has left to the next one. */
  get counted(): CountedVotes {
    return {
      voters: Number(this.word(COUNTED)),
      sums: this.options(COUNTED + 1),
      total: this.word(COUNTED + 5),
    };
  }

  set counted({ voters, sums, total }: CountedVotes) {
    this.setWord(COUNTED, BigInt(voters));
    this.setOptions(COUNTED + 1, sums);
    this.setWord(COUNTED + 5, total);
  }

  /** Shares of a validator whose owners were counted themselves. */
  countedShares(operator: Address): bigint {
    return this.storage.word(this.countedSharesSlot(operator));
  }

  setCountedShares(operator: Address, shares: bigint): void {
    this.storage.setWord(this.countedSharesSlot(operator), shares);
  }

  /** Whether an account's vote is among those that are counted. */
  isCounted(voter: Address): boolean {
    const place = this.set(VOTERS).placeOf(addressWord(voter));
    return place > 0n && place <= this.word(COUNTED);
  }

  private countedSharesSlot(operator: Address): bigint {
    const round = mapSlot(this.base + BigInt(COUNTED_SHARES), this.isExpedited ? 1n : 0n);
    return mapSlot(round, addressWord(operator));
  }

  private options(first: number): ByOption {
    const entries = VOTE_OPTIONS.map(
      (option, index) => [option, this.word(first + index)] as const,
    );
    return Object.fromEntries(entries) as Record<VoteOption, bigint>;
  }

  private setOptions(first: number, values: ByOption): void {
    for (const [index, option] of VOTE_OPTIONS.entries())
      this.setWord(first + index, values[option]);
  }

  private set(place: number): StoredSet {
    return new StoredSet(this.storage, this.base + BigInt(place));
  }

  private mapped(place: number, address: Address): bigint {
    return mapSlot(this.base + BigInt(place), addressWord(address));
  }

  private text(place: number): string {
    return this.storage.text(this.base + BigInt(place));
  }

  private setText(place: number, text: string): void {
    this.storage.setText(this.base + BigInt(place), text);
  }

  private word(place: number): bigint {
    return this.storage.word(this.base + BigInt(place));
  }

  private setWord(place: number, value: bigint): void {
    this.storage.setWord(this.base + BigInt(place), value);
  }
}

/** What a proposal begins with. */
export interface NewProposal {
  readonly proposer: Address;
  readonly submitMs: number;
  readonly depositEndMs: number;
  readonly title: string;
  readonly summary: string;
  readonly metadata: string;
  readonly isExpedited: boolean;
  /** See `encodeProposalMessages`. */
  readonly messageBytes: Uint8Array;
}

/** Bytes of a proposal's messages as they are stored. */
export function encodeProposalMessages(messages: readonly AnyMessage[]): Uint8Array {
  const writer = new ProtoWriter();
  for (const one of messages) writer.message(1, encodeAny(one));
  return writer.finish();
}

/** All proposals of a state. */
export class Proposals {
  private readonly storage: SystemStorage;

  constructor(state: JournaledState) {
    this.storage = new SystemStorage(state, "gov");
  }

  /** The record of an id; look at `exists`. */
  of(id: bigint): ProposalRecord {
    return new ProposalRecord(this.storage, id);
  }

  /** The newest id; 0 before the first. */
  get lastId(): bigint {
    return this.storage.word(MADE);
  }

  /** Makes a proposal that waits for deposits. */
  add(made: NewProposal): ProposalRecord {
    const id = this.lastId + 1n;
    this.storage.setWord(MADE, id);
    const proposal = this.of(id);
    proposal.create(made);
    this.waiting().add(id);
    this.addToProposer(made.proposer, 1n);
    this.noteEnd(proposal);
    return proposal;
  }

  /** Takes a proposal out of those that wait. */
  endWaiting(proposal: ProposalRecord): void {
    this.waiting().remove(proposal.id);
    this.addToProposer(proposal.proposer, -1n);
  }

  /** Those that wait for deposits or votes, in no order. */
  listWaiting(): ProposalRecord[] {
    return this.waiting()
      .members()
      .map((id) => this.of(id));
  }

  get waitingCount(): number {
    return this.waiting().size;
  }

  waitingOf(proposer: Address): number {
    return Number(this.storage.word(mapSlot(WAITING_OF_PROPOSER, addressWord(proposer))));
  }

  /** Before this time nothing ends; 0 where nothing waits. */
  get soonestEndMs(): number {
    return Number(this.storage.word(SOONEST_END));
  }

  /** Notes when a proposal ends, where that is sooner than all others. */
  noteEnd({ endMs }: ProposalRecord): void {
    const soonest = this.soonestEndMs;
    if (soonest === 0 || endMs < soonest) this.storage.setWord(SOONEST_END, BigInt(endMs));
  }

  /** Works out the soonest end again. */
  findSoonestEnd(): void {
    const ends = this.listWaiting().map(({ endMs }) => endMs);
    const soonest = ends.length === 0 ? 0 : Math.min(...ends);
    this.storage.setWord(SOONEST_END, BigInt(soonest));
  }

  /** The proposal whose counting a block has left to the next one: at most one. */
  get counting(): ProposalRecord | undefined {
    const id = this.storage.word(COUNTING);
    return id === 0n ? undefined : this.of(id);
  }

  set counting(proposal: ProposalRecord | undefined) {
    this.storage.setWord(COUNTING, proposal?.id ?? 0n);
  }

  /** Deposits that the gov account holds, atoken. */
  get heldAtoken(): Atoken {
    return this.storage.word(HELD);
  }

  /** Adds to what is held; whoever calls this moves the coins. */
  addHeld(deltaAtoken: Atoken): void {
    this.storage.setWord(HELD, this.heldAtoken + deltaAtoken);
  }

  private waiting(): StoredSet {
    return new StoredSet(this.storage, WAITING);
  }

  private addToProposer(proposer: Address, delta: bigint): void {
    const slot = mapSlot(WAITING_OF_PROPOSER, addressWord(proposer));
    this.storage.setWord(slot, this.storage.word(slot) + delta);
  }
}
