/**
 * The consensus RPC over a few blocks, asked by hand: transfers, code, a validator that signed twice
 * and left.
 */
import { afterAll, beforeAll } from "@jest/globals";
import { Wallet } from "ethers";
import { parseAddress } from "../../../../chain/address.js";
import { orderVotes } from "../../../../chain/consensus/evidence.js";
import { VOTE_TYPE, voteSignBytes } from "../../../../chain/consensus/vote.js";
import { parseHash32 } from "../../../../chain/hex.js";
import { CometTestChain, VALIDATOR_KEYS } from "../../../helpers/chains/comet-chain.js";

/** Pays for everything. */
export const faucet = new Wallet(`0x${"31".repeat(32)}`);
/** Whom most of it is for. */
export const shop = parseAddress(`0x${"77".repeat(20)}`);
/** Who got 7 atoken. */
export const cafe = parseAddress(`0x${"78".repeat(20)}`);
/** Code that writes a log: LOG0 of nothing. */
const LOGGER = "0x60006000a000";

/** What the server answers. */
export interface Reply {
  readonly status: number;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: string };
}

/** A transaction of the faucet's, or of another wallet. */
export function send(nonce: number, fields: object = {}, wallet = faucet): Promise<string> {
  return wallet.signTransaction({
    type: 0,
    chainId: 6940,
    nonce,
    gasPrice: 25_000_000n,
    gasLimit: 100_000n,
    to: shop,
    value: 5n,
    ...fields,
  });
}

/** Two precommits of one validator for different blocks of height 1. */
export function doubleVote(chain: CometTestChain) {
  const set = chain.consensus.validators(1);
  const validator = set?.at(1);
  const isKey = (key: Uint8Array) => Buffer.compare(key, validator?.publicKey ?? key) === 0;
  const key = VALIDATOR_KEYS.find(({ publicKey }) => isKey(publicKey));
  if (set === undefined || validator === undefined || key === undefined) throw new Error("no key");
  const votes = ["11", "22"].map((byte) => {
    const hash = parseHash32(`0x${byte.repeat(32)}`);
    const content = {
      type: VOTE_TYPE.precommit,
      height: 1,
      round: 0,
      blockId: { hash, parts: { total: 1, hash } },
      timeNs: 1_750_000_002_000_000_123n,
    };
    const signature = key.sign(voteSignBytes("chain_6940-1", content));
    return { ...content, validatorAddress: validator.address, validatorIndex: 1, signature };
  });
  const [first, second] = votes;
  if (first === undefined || second === undefined) throw new Error("no votes");
  const [voteA, voteB] = orderVotes(first, second);
  const timeNs = 1_750_000_002_000_000_000n;
  const { totalPower } = set;
  const evidence = { voteA, voteB, totalPower, validatorPower: validator.power, timeNs };
  return { evidence, publicKey: validator.publicKey };
}

/** One for all tests of a file. */
export function serverForTests() {
  let chain: CometTestChain;

  beforeAll(async () => {
    chain = await CometTestChain.open(faucet.address);
    await chain.mine([await send(0), await send(1, { to: cafe, value: 7n })]);
    await chain.mine();
    const { evidence, publicKey } = doubleVote(chain);
    const deploy = await send(2, { to: null, value: 0n, data: LOGGER });
    const updates = [{ publicKey, power: 0n }];
    await chain.mine([deploy, await send(3, { value: 9n })], { evidence: [evidence], updates });
    await chain.mine([await send(4, { to: null, value: 3n, data: "0xfe" })]);
    for (let nonce = 5; nonce < 8; nonce++) await chain.mine([await send(nonce)]);
  });

  afterAll(() => chain.close());

  async function get(path: string, headers: Record<string, string> = {}): Promise<Reply> {
    const response = await fetch(`${chain.url}/${path}`, { headers });
    return { status: response.status, ...((await response.json()) as object) };
  }

  async function post(body: unknown): Promise<Reply> {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const response = await fetch(chain.url, { method: "POST", body: text });
    return { status: response.status, ...((await response.json()) as object) };
  }

  function call(method: string, params: unknown): Promise<Reply> {
    return post({ jsonrpc: "2.0", id: 1, method, params });
  }
  return {
    get chain() {
      return chain;
    },
    get,
    post,
    call,
  };
}
