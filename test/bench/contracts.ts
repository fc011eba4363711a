/** Contracts of the benchmarks on a chain that runs: made, called, waited for. */
import type { Address } from "../../chain/address.js";
import { bytesToHex } from "../../chain/hex.js";
import { approval, type Exchange, planExchange } from "./bench-exchange.js";
import { MINT_GAS_LIMIT, mintDatas, tokenBytecode } from "./bench-token.js";
import { callRpc } from "./json-rpc.js";
import { type Payment, type Sender, signNext } from "./senders.js";

/** The token of the benchmarks on a chain. Throws Error when it is not mined in time. */
export function deployToken(url: string, owner: Sender): Promise<Address> {
  return deploy(url, owner, tokenBytecode());
}

/** A contract made from its creation code; its address. Throws Error when it is not mined in time. */
export async function deploy(url: string, owner: Sender, code: Uint8Array): Promise<Address> {
  const hash = await send(url, owner, { to: undefined, data: code, gasLimit: 3_000_000n });
  return (await waitForReceipt(url, hash)).contractAddress;
}

/** Gives every holder of all groups coins of the token. Throws Error when a mint is reverted. */
export async function mint(
  url: string,
  owner: Sender,
  token: Address,
  groups: readonly (readonly Sender[])[],
): Promise<void> {
  const hashes: string[] = [];
  for (const data of mintDatas(groups.flat().map(({ address }) => address))) {
    hashes.push(await send(url, owner, { to: token, data, gasLimit: MINT_GAS_LIMIT }));
  }
  await assertMined(url, hashes);
}

/**
 * An exchange on a chain whose first token all members of all groups hold, and may swap. Throws Error
 * when one of its transactions is reverted, or not mined in time.
 */
export async function deployExchange(
  url: string,
  owner: Sender,
  groups: readonly (readonly Sender[])[],
): Promise<Exchange> {
  const exchange = planExchange(owner);
  const [token] = exchange.tokens;
  const hashes: string[] = [];
  for (const payment of exchange.payments) hashes.push(await send(url, owner, payment));
  await mint(url, owner, token, groups);
  for (const trader of groups.flat()) {
    hashes.push(await send(url, trader, approval(token, exchange.router)));
  }
  await assertMined(url, hashes);
  return exchange;
}

async function assertMined(url: string, hashes: readonly string[]): Promise<void> {
  for (const hash of hashes) {
    if ((await waitForReceipt(url, hash)).status !== "0x1") throw new Error(`${hash} was reverted`);
  }
}

/** What is read of a receipt. */
export interface Receipt {
  readonly status: string;
  readonly contractAddress: Address;
  readonly blockNumber: string;
}

/** Sends a transaction, without coins unless it says so; its hash. Throws Error when it is refused. */
export function send(url: string, sender: Sender, payment: Payment): Promise<string> {
  const raw = signNext(sender, { valueAtoken: 0n, ...payment });
  return callRpc<string>(url, "eth_sendRawTransaction", [bytesToHex(raw)]);
}

/** Time for transactions to be mined; mints take several blocks of call gas. */
const RECEIPT_TIMEOUT_MS = 60_000;

/** A transaction's receipt. Throws Error when it is not mined in time. */
export async function waitForReceipt(url: string, hash: string): Promise<Receipt> {
  const deadlineMs = performance.now() + RECEIPT_TIMEOUT_MS;
  while (performance.now() < deadlineMs) {
    const receipt = await callRpc<Receipt | null>(url, "eth_getTransactionReceipt", [hash]);
    if (receipt !== null) return receipt;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${hash} was not mined within ${RECEIPT_TIMEOUT_MS} ms`);
}
