/**
 * Evidence with every field falsified, one at a time: a bundle of a balance, a proof of reserves, a
 * customer's liability. What a file says is refused with a code, or what it proves is the same.
 */
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { parseAddress } from "../../../chain/address.js";
import { parseHash32 } from "../../../chain/hex.js";
import { encodeBundle, parseBundle } from "../../../cli/audit/balance/bundle.js";
import {
  type CollectSource,
  collectBundle,
  headerSource,
} from "../../../cli/audit/balance/collect.js";
import { verifyBundle } from "../../../cli/audit/balance/verify.js";
import { AuditError } from "../../../cli/audit/errors.js";
import {
  encodeLiability,
  parseLiability,
  verifyLiability,
} from "../../../cli/audit/reserves/liability-file.js";
import { type MadeReserves, makeReserves } from "../../../cli/audit/reserves/make-reserves.js";
import { parseReserves } from "../../../cli/audit/reserves/read-reserves.js";
import { encodeReserves } from "../../../cli/audit/reserves/reserves-file.js";
import { assertPartOf, verifyReserves } from "../../../cli/audit/reserves/verify-reserves.js";
import type { Genesis } from "../../../node/settings/genesis.js";
import { CometTestChain } from "../../helpers/chains/comet-chain.js";
import { proofNodeOf } from "../../helpers/chains/proof-node.js";
import { falsifications } from "../../helpers/falsified.js";
import { createRandom } from "../../helpers/random.js";

const SEED = Number(process.env["SEED"] ?? Date.now() % 2 ** 32);
const payer = new Wallet(`0x${"11".repeat(32)}`);
const second = new Wallet(`0x${"22".repeat(32)}`);
const wallets = [payer, second];
const HOT = parseAddress(payer.address);
const SECOND = parseAddress(second.address);
const DEPOSITS = parseAddress(`0x${"5e".repeat(20)}`);
const LAST = 9;
const { signal } = new AbortController();

/** What nodes say beside what is signed, and votes behind the two thirds that were needed. */
const UNSIGNED = [
  "path.*",
  "path.*.commit.canonical",
  "path.*.commit.signed_header.commit.signatures.*.block_id_flag",
  "path.*.commit.signed_header.commit.signatures.*.signature",
  "path.*.commit.signed_header.commit.signatures.*.timestamp",
  "path.*.commit.signed_header.commit.signatures.*.validator_address",
  // Of block 1, which has no block before it.
  "path.*.commit.signed_header.header.last_block_id.parts.hash",
  "path.*.commit.signed_header.header.last_block_id.parts.total",
  "path.*.validators.*.count",
  "path.*.validators.*.total",
  "path.*.validators.*.validators.*.proposer_priority",
];

/** By chance the same nodes prove that there is nothing at another address, which is true. */
const isFalse = (what: string) => !/^(\*\.)?address (a character|the last one)/.test(what);

let chain: CometTestChain;
let genesis: Genesis;
let source: CollectSource;

beforeAll(async () => {
  console.log(`falsified evidence: SEED=${SEED}`);
  chain = await CometTestChain.open(HOT);
  genesis = chain.genesis;
  const paid = await payments();
  // From block 6 on the first key alone decides: a header in between leads there.
  await chain.mineToNewSet(
    Array.from({ length: LAST }, (_, index) => (index === 2 ? paid : [])),
    6,
  );
  const headers = headerSource({ url: chain.url, oldestHeight: async () => 1, signal });
  source = { node: proofNodeOf(() => chain), headers, genesis, height: LAST - 1, signal };
});
afterAll(() => chain?.close());

function payments(): Promise<string[]> {
  const fields = { type: 0, chainId: 6940, gasLimit: 21_000, gasPrice: 25_000_000, value: 1_000n };
  const sent = [DEPOSITS, SECOND].map((to, nonce) => ({ ...fields, nonce, to }));
  return Promise.all(sent.map((each) => payer.signTransaction(each)));
}

/**
 * Verifies every falsification of a file.
 * @returns those that are believed: where they prove the same, and those that prove something else
 */
async function believed(
  text: string,
  verify: (text: string) => unknown,
  isMeant: (path: readonly (string | number)[]) => boolean = () => true,
) {
  const told = await verify(text);
  const [same, other] = [new Set<string>(), new Set<string>()];
  let count = 0;
  for (const each of falsifications(JSON.parse(text), createRandom(SEED))) {
    const { place, path, how, value } = each;
    if (!isMeant(path)) continue;
    count += 1;
    try {
      const proven = await verify(JSON.stringify(value));
      if (isDeepStrictEqual(proven, told)) same.add(place);
      else other.add(`${place} ${how}`);
    } catch (error) {
      const code = error instanceof AuditError ? error.code : String(error);
      expect(["BUNDLE_UNREADABLE", "NOT_PROVEN", { seed: SEED, place, how }]).toContain(code);
    }
  }
  return { count, same: [...same].toSorted(), other: [...other].toSorted() };
}

describe("falsified field by field", () => {
  it("a balance's proof is refused, but for what nodes say and nobody signs", async () => {
    const bundle = await collectBundle({ ...source, address: DEPOSITS });
    const [text, lastHeader] = [encodeBundle(bundle), bundle.path.length - 1];
    const { count, same, other } = await believed(
      text,
      (changed) =>
        verifyBundle(parseBundle(changed), genesis).then(({ headers: _way, ...proven }) => proven),
      // The headers between are judged like the last one.
      ([first, at]) => first !== "path" || at === 0 || at === lastHeader,
    );
    expect({ same, other: other.filter(isFalse) }).toEqual({
      same: ["accountProof.*", ...UNSIGNED],
      other: [],
    });
    expect(count).toBeGreaterThan(1_000);
  });

  const make = (): Promise<MadeReserves> => {
    const booked = chain.chain.view.block(LAST - 1)?.block.hash;
    const books = {
      ledgerId: "a ledger",
      height: LAST - 1,
      booked: { height: LAST - 1, blockHash: parseHash32(booked) },
      liabilities: [
        { asset: "TOKEN", customerId: "alice", units: 700n },
        { asset: "TOKEN", customerId: "bob", units: 205n },
        { asset: "TOKEN", customerId: "carol", units: 5n },
        { asset: "GOLD", customerId: "alice", units: 7n },
      ],
      addresses: [
        { address: HOT, role: "hot-wallet" as const },
        { address: SECOND, role: "hot-wallet" as const },
        { address: DEPOSITS, role: "deposit-address" as const },
      ],
    };
    const keys = wallets.map(({ address, privateKey }) => ({
      address: parseAddress(address),
      privateKey: Buffer.from(privateKey.slice(2), "hex"),
    }));
    return makeReserves({ source, books, keys, nonce: "auditor 7" });
  };

  it("a proof of reserves is refused", async () => {
    const lines = [...encodeReserves((await make()).contents)].map((line) => JSON.parse(line));
    const { count, same, other } = await believed(
      JSON.stringify(lines),
      async (changed) => {
        const texts: readonly unknown[] = JSON.parse(changed);
        const file = await parseReserves(texts.map((line) => JSON.stringify(line)));
        const proven = await verifyReserves(file, genesis);
        return { ...proven, block: { ...proven.block, headers: 0 } };
      },
      // What is inside of the headers is judged as in a balance's proof.
      (path) => path[1] !== "path" || path.length <= 3,
    );
    expect({ same, other: other.filter(isFalse) }).toEqual({
      same: ["*", "*.liabilities.*", "*.path.*", "*.signatures.*"],
      other: [],
    });
    expect(count).toBeGreaterThan(500);
  });

  it("a proof of reserves is refused that no wallet signs, or one without its account", async () => {
    const { contents } = await make();
    const verify = async (changed: object) => {
      const lines = encodeReserves({ ...contents, ...changed });
      return verifyReserves(await parseReserves(lines), genesis);
    };
    const { accounts, signatures } = contents;
    const unsigned = accounts.map((account) => ({ ...account, role: "deposit-address" as const }));
    const [first, next, deposits] = accounts;
    const [one] = signatures;
    for (const changed of [
      { accounts: unsigned },
      { accounts: unsigned, signatures: [] },
      { accounts: [], signatures: [] },
      { accounts: [deposits], signatures: [] },
      { accounts: [first, deposits] },
      { accounts: [first, next] },
      { accounts: [first, ...unsigned.slice(1)] },
      { signatures: [...signatures, one] },
    ]) {
      await expect(verify(changed)).rejects.toMatchObject({ code: "NOT_PROVEN" });
    }
  });

  it("a customer's file is refused beside the proof of reserves", async () => {
    const { contents, liabilities } = await make();
    const reserves = await parseReserves(encodeReserves(contents));
    const proven = await verifyReserves(reserves, genesis);
    for (const liability of liabilities) {
      const { count, same, other } = await believed(
        encodeLiability(liability.file()),
        (changed) => {
          const file = parseLiability(changed);
          assertPartOf(file, { reserves, proven });
          return verifyLiability(file);
        },
      );
      // The order of the roots: what is signed is one hash over them by name.
      expect({ same, other }).toEqual({ same: ["roots.*"], other: [] });
      expect(count).toBeGreaterThan(100);
    }
  });
});
