/**
 * Transactions of every kind, from a seed: transfers, tokens, an exchange, random code that is deployed and
 * called, the chain's own contracts, and what makes no sense. Each is included, many fail.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { Interface, Wallet } from "ethers";
import type { Address } from "../../chain/address.js";
import { contractAddressOf } from "../../chain/evm/contract-address.js";
import { NATIVE_CONTRACTS } from "../../chain/evm/precompiles.js";
import { bytesToHex, hexToBytes } from "../../chain/hex.js";
import { cloneFolder } from "../../cli/home/home.js";
import { approval, type Exchange, planExchange, swap } from "../bench/bench-exchange.js";
import {
  HOLDERS_PER_MINT,
  MINT_GAS_LIMIT,
  mintDatas,
  tokenTransfer,
} from "../bench/bench-token.js";
import {
  CHAIN_ID,
  createRecipients,
  createSenders,
  GAS_PRICE_ATOKEN,
  type Payment,
  type Sender,
  signNext,
} from "../bench/senders.js";
import { createRandom, type Random } from "../helpers/random.js";
import { CONTRACT, OTHER } from "../unit/execution/call-fixture.js";
import { program, THIRD } from "../unit/execution/engines/random-programs.js";

const SENDERS = 64;

/** Accounts that get something; some get it again and again. */
const RECIPIENTS = 20_000;

/** Coins of each sender: far more than its transactions cost. */
const FUNDED_ATOKEN = 10n ** 24n;

const CODE_GAS_LIMIT = 400_000n;
const NATIVE_GAS_LIMIT = 1_000_000n;

/** Parts of a random program. */
const PROGRAM_PARTS = 30;

/** Programs that may still be called, the newest ones. */
const MAX_PROGRAMS = 2_000;

/** Contracts that a random program knows, for which those that are on the chain stand in. */
const KNOWN = [CONTRACT, OTHER, THIRD].map((address) => address.slice(2));

/** Of a hundred transactions. */
const SHARES: readonly (readonly [Kind, number])[] = [
  ["transfer", 30],
  ["token", 20],
  ["swap", 5],
  ["creation", 8],
  ["call", 28],
  ["native", 3],
  ["typed", 3],
  ["odd", 3],
];

/** What a transaction is. */
export type Kind =
  | "transfer"
  | "token"
  | "swap"
  | "creation"
  | "call"
  | "native"
  /** With an access list and the fees of EIP-1559, signed by ethers. */
  | "typed"
  | "odd";

/** A signed transaction. */
export interface Signed {
  readonly kind: Kind;
  readonly raw: string;
}

/** Where the coins come from, and whom the chain's own contracts know. */
export interface MixedLoadOptions {
  readonly seed: number;
  /** Private key of an account with coins that has sent nothing yet. */
  readonly faucet: Sender;
  /** Bech32 name of a validator. */
  readonly operator: string;
}

/** Makes the transactions, in an order in which a pool takes them. */
export class MixedLoad {
  readonly #random: Random;
  readonly #senders = createSenders(SENDERS, "mixed");
  readonly #recipients = createRecipients(RECIPIENTS);
  readonly #programs: Address[] = [];
  readonly #exchange: Exchange;
  readonly #staking = new Interface(nativeAbi("IStaking"));
  readonly #distribution = new Interface(nativeAbi("IDistribution"));
  readonly #options: MixedLoadOptions;

  constructor(options: MixedLoadOptions) {
    this.#options = options;
    this.#random = createRandom(options.seed);
    this.#exchange = planExchange(this.#owner);
  }

  get #owner(): Sender {
    return this.#senderAt(0);
  }

  /** Coins for everybody, the exchange, and what they have of its tokens: each list behind the one before. */
  preparations(): string[][] {
    const { faucet } = this.#options;
    const { tokens, payments, router } = this.#exchange;
    const holders = this.#senders.map(({ address }) => address);
    const sign = (sender: Sender, payment: Payment) => bytesToHex(signNext(sender, payment));
    const coins = holders.map((to) => sign(faucet, { to, valueAtoken: FUNDED_ATOKEN }));
    const market = payments.map((payment) => sign(this.#owner, payment));
    const minted = tokens.flatMap((token) =>
      mintDatas(repeated(holders, HOLDERS_PER_MINT)).map((data) =>
        sign(this.#owner, { to: token, data, gasLimit: MINT_GAS_LIMIT, valueAtoken: 0n }),
      ),
    );
    const approvals = this.#senders.map((sender) => sign(sender, approval(tokens[0], router)));
    return [coins, market, [...minted, ...approvals]];
  }

  /** The next transactions, of senders in turn. */
  async next(count: number): Promise<Signed[]> {
    const signed: Signed[] = [];
    for (let index = 0; index < count; index++) {
      const sender = this.#senderAt(index % SENDERS);
      const kind = this.#kind();
      const raw = kind === "typed" ? await this.#typed(sender) : this.#plain(sender, kind);
      signed.push({ kind, raw });
    }
    return signed;
  }

  #senderAt(index: number): Sender {
    const sender = this.#senders[index];
    if (sender === undefined) throw new RangeError("no sender");
    return sender;
  }

  #kind(): Kind {
    let rest = this.#random.integer(100);
    for (const [kind, share] of SHARES) {
      rest -= share;
      if (rest < 0) return kind;
    }
    return "transfer";
  }

  #plain(sender: Sender, kind: Exclude<Kind, "typed">): string {
    const payment = this.#payment(sender, kind);
    if (kind === "creation") {
      this.#programs.push(contractAddressOf(sender.address, sender.nextNonce));
      if (this.#programs.length > MAX_PROGRAMS) this.#programs.shift();
    }
    return bytesToHex(signNext(sender, payment));
  }

  #payment(sender: Sender, kind: Exclude<Kind, "typed">): Payment {
    const random = this.#random;
    const to = random.pick(this.#recipients);
    switch (kind) {
      case "transfer":
        return { to, valueAtoken: BigInt(random.integer(1_000_000)) };
      case "token":
        return tokenTransfer(random.pick(this.#exchange.tokens), to);
      case "swap":
        return swap(this.#exchange, to);
      case "creation":
        return { to: undefined, data: this.#creation(), gasLimit: CODE_GAS_LIMIT, valueAtoken: 0n };
      case "call":
        return this.#call(random.bytes(random.integer(100)));
      case "native":
        return this.#native(sender);
      default:
        return { ...this.#call(random.bytes(random.integer(600))), to: this.#oddRecipient() };
    }
  }

  /** A call of a program with some coins. */
  #call(data: Uint8Array): Payment {
    const valueAtoken = BigInt(this.#random.integer(1_000));
    return { to: this.#program(), data, gasLimit: CODE_GAS_LIMIT, valueAtoken };
  }

  #program(): Address {
    return this.#random.pick([...this.#programs.slice(-200), this.#exchange.router]);
  }

  /** Code that leaves a random program; now and then, the program is what creates. */
  #creation(): Uint8Array {
    let code = program((bound) => this.#random.integer(bound), PROGRAM_PARTS).replace(/^0x/, "");
    for (const known of KNOWN) code = code.replaceAll(known, this.#program().slice(2));
    if (this.#random.integer(5) === 0) return hexToBytes(`0x${code}`);
    const size = (code.length / 2).toString(16).padStart(4, "0");
    // PUSH2 size, DUP1, PUSH1 10, PUSH0, CODECOPY, PUSH0, RETURN; the program is what follows.
    return hexToBytes(`0x61${size}80600a5f395ff3${code}`);
  }

  #native(sender: Sender): Payment {
    const { operator } = this.#options;
    const amountAtoken = BigInt(this.#random.integer(10 ** 9));
    const of = (address: Address | undefined, data: string): Payment => ({
      to: address,
      data: hexToBytes(data),
      gasLimit: NATIVE_GAS_LIMIT,
      valueAtoken: 0n,
    });
    const stake = (name: string) =>
      of(
        NATIVE_CONTRACTS.get("STAKING"),
        this.#staking.encodeFunctionData(name, [sender.address, operator, amountAtoken]),
      );
    const claim = () =>
      of(
        NATIVE_CONTRACTS.get("DISTRIBUTION"),
        this.#distribution.encodeFunctionData("withdrawDelegatorRewards", [
          sender.address,
          operator,
        ]),
      );
    return this.#random.pick([() => stake("delegate"), () => stake("undelegate"), claim])();
  }

  /** A precompile, a contract of the chain, or nobody. */
  #oddRecipient(): Address {
    const precompile = `0x${(1 + this.#random.integer(10)).toString(16).padStart(40, "0")}`;
    const own = this.#random.pick([...NATIVE_CONTRACTS.values()]);
    return this.#random.pick([precompile as Address, own, this.#random.pick(this.#recipients)]);
  }

  async #typed(sender: Sender): Promise<string> {
    const payment = this.#call(this.#random.bytes(this.#random.integer(100)));
    const slots = [0, 1, 7].map((slot) => `0x${slot.toString(16).padStart(64, "0")}`);
    const raw = await new Wallet(bytesToHex(sender.privateKey)).signTransaction({
      type: 2,
      chainId: CHAIN_ID,
      nonce: Number(sender.nextNonce),
      to: payment.to ?? null,
      value: payment.valueAtoken ?? 0n,
      gasLimit: payment.gasLimit ?? CODE_GAS_LIMIT,
      data: bytesToHex(payment.data ?? new Uint8Array(0)),
      maxFeePerGas: GAS_PRICE_ATOKEN * 2n,
      maxPriorityFeePerGas: GAS_PRICE_ATOKEN,
      accessList: payment.to === undefined ? [] : [{ address: payment.to, storageKeys: slots }],
    });
    sender.nextNonce += 1n;
    return raw;
  }
}

function repeated(holders: readonly Address[], count: number): Address[] {
  return Array.from({ length: count }, () => holders).flat();
}

function nativeAbi(name: string) {
  const file = path.join(cloneFolder(), "contracts", "artifacts", `${name}.json`);
  return (JSON.parse(readFileSync(file, "utf8")) as { readonly abi: [] }).abi;
}
