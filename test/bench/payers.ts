/**
 * Payers that an exchange writes first or takes from a library, each on an account of its own: they
 * pay through a node that fails now and then, and try a payment again that they believe failed.
 */
import { FetchRequest, JsonRpcProvider, NonceManager, Wallet } from "ethers";
import { createWalletClient, createNonceManager, defineChain, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { jsonRpc } from "viem/nonce";
import type { Address } from "../../chain/address.js";
import { CHAIN_ID, type Sender } from "./senders.js";

/** Somebody who pays 1 atoken to each recipient. */
export interface Payer {
  readonly name: string;
  /** Payments under way at once, as many as its author allows. */
  readonly concurrency: number;
  /** Sends one payment. Throws whatever the library throws; nobody knows then whether it was sent. */
  pay(to: Address): Promise<void>;
  close(): void;
}

/** What a payer is made with. */
export interface PayerOptions {
  readonly url: string;
  readonly account: Sender;
  /** Longest wait for one answer. */
  readonly timeoutMs: number;
}

/** Payments that a library's keeper of nonces has under way at once. */
const MANAGED_CONCURRENCY = 16;

/** Times that a payment is tried before its payer gives up. */
const ATTEMPTS_MAX = 10;

/** All of them. */
export const PAYERS: readonly ((options: PayerOptions) => Payer)[] = [
  ethersManager,
  viemManager,
  naiveLoop,
];

/** What a payer believes of its payments. */
export interface Paid {
  /** Recipients whose payment was answered with a hash. */
  readonly sent: ReadonlySet<Address>;
  /** Payments that were tried again, since they seemed to have failed. */
  readonly retries: number;
  readonly perSecond: number;
}

/** Pays each recipient 1 atoken, tries again what seems to have failed, and gives up at last. */
export async function payAll(payer: Payer, recipients: readonly Address[]): Promise<Paid> {
  const waiting = [...recipients];
  const sent = new Set<Address>();
  let retries = 0;
  const startMs = performance.now();
  const payOne = async (to: Address): Promise<void> => {
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
      try {
        await payer.pay(to);
        sent.add(to);
        return;
      } catch {
        // Whoever writes such a loop takes an error for a payment that was not made.
        retries += 1;
      }
    }
  };
  const work = async (): Promise<void> => {
    for (let to = waiting.shift(); to !== undefined; to = waiting.shift()) await payOne(to);
  };
  await Promise.all(Array.from({ length: payer.concurrency }, work));
  const seconds = (performance.now() - startMs) / 1_000;
  return { sent, retries, perSecond: sent.size / seconds };
}

/** `NonceManager` of ethers, told to look again where a payment failed, as its page says. */
function ethersManager(options: PayerOptions): Payer {
  const provider = ethersProvider(options);
  const manager = new NonceManager(ethersWallet(options, provider));
  return {
    name: "ethers NonceManager",
    concurrency: MANAGED_CONCURRENCY,
    async pay(to) {
      try {
        await manager.sendTransaction({ to, value: 1n });
      } catch (error) {
        manager.reset();
        throw error;
      }
    },
    close: () => provider.destroy(),
  };
}

/** viem's nonce manager, which looks again by itself where a payment failed. */
function viemManager({ url, account, timeoutMs }: PayerOptions): Payer {
  const chain = defineChain({
    id: Number(CHAIN_ID),
    name: "bench",
    nativeCurrency: { name: "Token", symbol: "TOKEN", decimals: 18 },
    rpcUrls: { default: { http: [url] } },
  });
  const nonceManager = createNonceManager({ source: jsonRpc() });
  const client = createWalletClient({
    account: privateKeyToAccount(hexKey(account), { nonceManager }),
    chain,
    transport: http(url, { timeout: timeoutMs }),
  });
  return {
    name: "viem nonceManager",
    concurrency: MANAGED_CONCURRENCY,
    async pay(to) {
      await client.sendTransaction({ to, value: 1n });
    },
    close: () => undefined,
  };
}

/** What is written first: nonce, send, next. */
export function naiveLoop(options: PayerOptions): Payer {
  const provider = ethersProvider(options);
  const wallet = ethersWallet(options, provider);
  return {
    name: "naive loop",
    concurrency: 1,
    async pay(to) {
      const nonce = await provider.getTransactionCount(wallet.address, "pending");
      await wallet.sendTransaction({ to, value: 1n, nonce });
    },
    close: () => provider.destroy(),
  };
}

function ethersProvider({ url, timeoutMs }: PayerOptions): JsonRpcProvider {
  const request = new FetchRequest(url);
  request.timeout = timeoutMs;
  // With its cache ethers answers the next getTransactionCount from what it knew before the payment.
  return new JsonRpcProvider(request, CHAIN_ID, { staticNetwork: true, cacheTimeout: -1 });
}

function ethersWallet({ account }: PayerOptions, provider: JsonRpcProvider): Wallet {
  return new Wallet(hexKey(account), provider);
}

function hexKey({ privateKey }: Sender): `0x${string}` {
  return `0x${Buffer.from(privateKey).toString("hex")}`;
}
