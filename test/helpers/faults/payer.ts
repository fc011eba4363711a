/** Who pays customers during faults: one account, whose payments are sent until a node has them. */
import { Transaction, Wallet } from "ethers";
import { NATIVE_ASSET } from "../../../ledger/journal/accounts.js";
import type { Random } from "../random.js";
import { until } from "../until.js";
import type { FaultChain } from "./chain.js";
import { LAB_TOKEN_CALLS } from "./movements.js";
import type { Movement, Payment } from "./promises.js";

const CHAIN_ID = 6940;

/** Four times the node's suggestion: also above the floor of the test that raises it. */
const GAS_PRICE_ATOKEN = 100_000_000n;

const TRANSFER_GAS = 21_000;
const CALL_GAS = 200_000;

const TIMEOUT_MS = 90_000;

/** Where its key and the token are: both are read anew each time. */
export interface PayerPlace {
  /** Private key in hex. */
  readonly key: () => string;
  /** Address of the token, which mints for everybody; undefined for none. */
  readonly token: () => string | undefined;
}

/** An account with payments. */
export class Payer {
  /** In the order of nonces. */
  readonly payments: Payment[] = [];
  #nextNonce = 0;

  constructor(
    private readonly chain: FaultChain,
    private readonly place: PayerPlace,
  ) {}

  /** Begins where the account is on the chain. @returns the address of a contract of this code */
  async open(creationCode: string): Promise<string> {
    const { address } = new Wallet(this.place.key());
    this.#nextNonce = Number(await this.chain.call("eth_getTransactionCount", address, "latest"));
    const { raw, hash } = this.#signed({ data: creationCode, gasLimit: CALL_GAS });
    await this.chain.call("eth_sendRawTransaction", raw);
    const { contractAddress } = await this.receipt(hash);
    return String(contractAddress).toLowerCase();
  }

  /** A payment with the next nonce, which nobody has sent yet. */
  sign(movement: Movement, isEarly: boolean): Payment {
    const { asset, to, amountUnits } = movement;
    const signed =
      asset === NATIVE_ASSET
        ? this.#signed({ to, value: amountUnits, gasLimit: TRANSFER_GAS })
        : this.#signed({ to: this.#token, data: mintOf(movement), gasLimit: CALL_GAS });
    const payment = { ...movement, ...signed, isEarly, isAcknowledged: false };
    this.payments.push(payment);
    return payment;
  }

  /** Sends until each is answered with its hash or mined; an answered one is never sent again. */
  async send(payments: readonly Payment[]): Promise<void> {
    let open = [...payments];
    await until(
      async () => {
        const replies = await this.chain.batch(
          open.map(({ raw }) => ["eth_sendRawTransaction", [raw]]),
        );
        const left: Payment[] = [];
        for (const [index, payment] of open.entries()) {
          const { result, error } = replies[index] ?? {};
          payment.isAcknowledged = result === payment.hash;
          const isMined = /nonce too low/i.test(error?.message ?? "");
          if (isMined) await this.receipt(payment.hash);
          if (!payment.isAcknowledged && !isMined) left.push(payment);
        }
        open = left;
        return open.length === 0;
      },
      { timeoutMs: TIMEOUT_MS, what: "the node takes the payments" },
    );
  }

  /**
   * Payments that the chain does not know any more are sent again, but for some of the last ones:
   * those never happened, and their nonces are used for others.
   * @param upTo the payment that surely is sent again
   */
  async payLostAgain(random: Random, upTo?: Payment): Promise<void> {
    const found = await this.chain.results(
      this.payments.map(({ hash }) => ["eth_getTransactionByHash", [hash]]),
    );
    const lost = this.payments.filter((_, index) => found[index] === null);
    const least = upTo === undefined ? 0 : lost.indexOf(upTo) + 1;
    const again = lost.splice(0, least + random.integer(lost.length - least + 1));
    this.payments.splice(this.payments.length - lost.length, lost.length);
    this.#nextNonce -= lost.length;
    await this.send(again);
  }

  /** Resolves when it is mined. */
  async receipt(hash: string): Promise<Record<string, unknown>> {
    let receipt: unknown = null;
    await until(
      async () => {
        receipt = await this.chain.call("eth_getTransactionReceipt", hash);
        return receipt !== null;
      },
      { timeoutMs: TIMEOUT_MS, what: `a receipt of ${hash}` },
    );
    return receipt as Record<string, unknown>;
  }

  get #token(): string {
    const token = this.place.token();
    if (token === undefined) throw new Error("this exchange lists no token");
    return token;
  }

  #signed(fields: { to?: string; value?: bigint; data?: string; gasLimit: number }) {
    const transaction = Transaction.from({
      type: 0,
      chainId: CHAIN_ID,
      nonce: this.#nextNonce,
      gasPrice: GAS_PRICE_ATOKEN,
      ...fields,
    });
    this.#nextNonce += 1;
    const { signingKey } = new Wallet(this.place.key());
    transaction.signature = signingKey.sign(transaction.unsignedHash);
    return { raw: transaction.serialized, hash: String(transaction.hash) };
  }
}

function mintOf({ to, amountUnits }: Movement): string {
  return LAB_TOKEN_CALLS.encodeFunctionData("mint", [to, amountUnits]);
}
