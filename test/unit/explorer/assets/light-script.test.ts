/**
 * The browser's light client (`explorer/assets/light/headers.mjs`) over headers that validators signed:
 * what a reader's trusted header proves, and what one validator cannot hinder.
 */
import { createHash } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { ed25519 } from "@noble/curves/ed25519.js";
import { COMMIT_FLAG, type Commit } from "../../../../chain/consensus/commit.js";
import { hashConsensusHeader } from "../../../../chain/consensus/consensus-header.js";
import { verifySignature } from "../../../../chain/consensus/ed25519.js";
import type { LightBlock } from "../../../../chain/consensus/light.js";
import { VOTE_TYPE, voteSignBytes } from "../../../../chain/consensus/vote.js";
import { commitJson, headerJson, validatorJson } from "../../../../node/rpc/comet/json/encode.js";
import {
  LIGHT_CHAIN_ID,
  lightBlock,
  lightChain,
  lightKeys,
  lightSet,
  START_NS,
} from "../../../helpers/chains/light-blocks.js";

type Json = Record<string, unknown>;

interface Pin {
  readonly height: number;
  readonly hash: string;
}

interface HeadersScript {
  readonly readSigned: (answer: Json) => Promise<Json>;
  readonly checkSelf: (block: Json, chainId: string) => Promise<void>;
  readonly followFrom: (pin: Pin, target: Json, source: Json, expected: Json) => Promise<void>;
}

const LIGHT = "../../../../explorer/assets/light";
const script: HeadersScript = await import(`${LIGHT}/headers.mjs`);

const DAY_MS = 86_400_000;

const sha512 = (parts: readonly Uint8Array[]) =>
  createHash("sha512").update(Buffer.concat(parts)).digest();

const answerOf = ({ header, commit, validators }: LightBlock): Json => ({
  commit: { signed_header: { header: headerJson(header), commit: commitJson(commit) } },
  validators: [{ validators: validators.validators.map(validatorJson) }],
});

const pinOf = ({ header }: LightBlock): Pin => ({
  height: header.height,
  hash: hashConsensusHeader(header).slice(2),
});

describe("a trusted header", () => {
  const chain = lightChain(60, { validators: 4, change: 1 });
  const at = (height: number): LightBlock => {
    const block = chain.get(height);
    if (block === undefined) throw new RangeError(`no height ${height}`);
    return block;
  };
  const source = {
    header: async (height: number) => answerOf(at(height)),
    headers: async (to: number) => ({
      headers: Array.from({ length: Math.min(20, to) }, (_, index) =>
        headerJson(at(to - index).header),
      ),
    }),
  };
  const follow = async (pin: Pin, height: number, agedMs: number) => {
    const nowMs = Number(at(60).header.timeNs / 1_000_000n) + agedMs;
    const target = await script.readSigned(answerOf(at(height)));
    await script.followFrom(pin, target, source, { chainId: LIGHT_CHAIN_ID, nowMs });
  };

  it("of this week proves itself, newer ones and older ones", async () => {
    for (const height of [1, 29, 30, 31, 60]) await follow(pinOf(at(30)), height, 1_000);
  });

  it("that is older proves itself and those below it, by their hashes, and no newer one", async () => {
    for (const height of [1, 29, 30]) await follow(pinOf(at(30)), height, 400 * DAY_MS);
    for (const height of [31, 60]) {
      await expect(follow(pinOf(at(30)), height, 400 * DAY_MS)).rejects.toThrow(
        "older than a week",
      );
    }
    const other = { ...pinOf(at(30)), hash: "ab".repeat(32) };
    await expect(follow(other, 1, 400 * DAY_MS)).rejects.toThrow("does not have the trusted hash");
  });
});

describe("signatures", () => {
  const keys = lightKeys(4);
  const validators = lightSet(keys, 1n, 0n);
  const whole = lightBlock({ keys, validators, height: 9, timeNs: START_NS });
  const check = async (commit: Commit) =>
    script.checkSelf(await script.readSigned(answerOf({ ...whole, commit })), LIGHT_CHAIN_ID);

  /** As a validator signs who wants to be counted by ZIP-215 alone: R has a part of small order. */
  function oddSignature(index: number): Uint8Array {
    const { commit } = whole;
    const entry = commit.signatures[index];
    if (entry === undefined || entry.flag === COMMIT_FLAG.absent) throw new RangeError("no vote");
    const vote = { type: VOTE_TYPE.precommit, ...commit, timeNs: entry.timeNs };
    const message = voteSignBytes(LIGHT_CHAIN_ID, vote);
    const publicKey = validators.at(index)?.publicKey;
    const place = keys.findIndex((key) => key.publicKey === publicKey);
    const seed = Buffer.alloc(32);
    seed.writeUInt32BE(1 + place, 28);
    const { scalar, pointBytes } = ed25519.utils.getExtendedPublicKey(seed);
    const { Point } = ed25519;
    const torsion = Point.fromHex(
      "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    );
    const order = Point.Fn.ORDER;
    const number = (bytes: Uint8Array) =>
      BigInt(`0x${Buffer.from(bytes.toReversed()).toString("hex")}`);
    const nonce = 7n;
    const r = Point.BASE.multiply(nonce).add(torsion).toBytes();
    const k = number(sha512([r, pointBytes, message])) % order;
    const s = (nonce + k * scalar) % order;
    const bytes = Buffer.from(s.toString(16).padStart(64, "0"), "hex");
    const signature = Uint8Array.from([...r, ...bytes.toReversed()]);
    expect(verifySignature(pointBytes, message, signature)).toBe(true);
    return signature;
  }

  const withSignature = (
    indexes: readonly number[],
    signatureOf: (index: number) => Uint8Array,
  ) => ({
    ...whole.commit,
    signatures: whole.commit.signatures.map((entry, index) =>
      entry.flag === COMMIT_FLAG.absent || !indexes.includes(index)
        ? entry
        : { ...entry, signature: signatureOf(index) },
    ),
  });

  it("of one validator that no browser counts do not keep a header from being proven", async () => {
    await check(whole.commit);
    for (const index of [0, 3]) await check(withSignature([index], oddSignature));
  });

  it("count where they are right alone: two of four are too few", async () => {
    await expect(check(withSignature([0, 3], oddSignature))).rejects.toThrow("only 2 of 4 signed");
    const wrong = () => new Uint8Array(64);
    await check(withSignature([1], wrong));
    await expect(check(withSignature([1, 2], wrong))).rejects.toThrow("only 2 of 4 signed");
  });
});
