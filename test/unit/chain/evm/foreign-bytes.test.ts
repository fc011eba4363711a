/** Logs, calldata and answers of any length: whoever writes them stops no reader by them. */
import { describe, expect, it } from "@jest/globals";
import { AbiCoder, id, zeroPadValue } from "ethers";
import { parseAddress } from "../../../../chain/address.js";
import {
  decodeErc1155,
  decodeForeignText,
  decodeTransfer,
  decodeUnits,
  ERC1155_TOPICS,
  ERC20_SELECTORS,
  ERC20_TOPICS,
} from "../../../../chain/evm/erc20.js";
import { revertReason, revertText } from "../../../../chain/evm/revert-reason.js";
import { bytesToHex, type Hash32, type Hex, hexToBytes } from "../../../../chain/hex.js";
import { decodeStakingCall, STAKING_CONTRACTS } from "../../../../chain/staking/calls.js";
import { decodeCall, decodeError, decodeLog, decodeText } from "../../../../explorer/decode/abi.js";
import { readAbi } from "../../../../explorer/decode/abi-items.js";
import { dexEventOf } from "../../../../indexer/ingest/dex-logs.js";
import { tokensMoved } from "../../../../rpc-client/indexing/token-moves.js";
import type { JournaledBlock, JournaledLog } from "../../../../rpc-client/journal-codec.js";
import { transferOf } from "../../../../rpc-client/tokens/transfer-logs.js";
import { memoOfData } from "../../../../sidecar/rosetta/memo.js";
import { tokenMovesOf } from "../../../../sidecar/rosetta/token-operations.js";
import { GOLD, REGISTRY } from "../../../helpers/chains/known-tokens.js";
import { createRandom, type Random } from "../../../helpers/random.js";

const SEED = 20_260;
const MAX_BYTES = 200;
const TOKEN = parseAddress(GOLD.metadata.contractAddress);

/** Faults that a failure shows. */
const SHOWN = 5;

const SIGNATURES = [
  ERC20_TOPICS.transfer,
  ERC20_TOPICS.deposit,
  ERC20_TOPICS.withdrawal,
  ERC1155_TOPICS.transferSingle,
  ERC1155_TOPICS.transferBatch,
  id("PairCreated(address,address,address,uint256)"),
  id("Sync(uint112,uint112)"),
  id("Swap(address,uint256,uint256,uint256,uint256,address)"),
  id("Mint(address,uint256,uint256)"),
  id("Burn(address,uint256,uint256,address)"),
  id("Stored(address,(address,uint256[]),string)"),
] as Hash32[];

const SELECTORS = [
  "0x08c379a0",
  "0x4e487b71",
  ...Object.values(ERC20_SELECTORS),
  ...[
    "swapExactETHForTokens(uint256,address[],address,uint256)",
    "TooMuch(string,uint256[])",
    "delegate(address,string,uint256)",
    "undelegate(address,string,uint256)",
    "withdrawDelegatorRewards(address,string)",
    "vote(address,uint64,uint8,string)",
  ].map((signature) => id(signature).slice(0, 10)),
];

/** As a verified contract has it: lists in structs, texts. */
const ABI = readAbi([
  {
    type: "event",
    name: "Stored",
    inputs: [
      { name: "who", type: "address", indexed: true },
      {
        name: "entry",
        type: "tuple",
        components: [
          { name: "who", type: "address" },
          { name: "amounts", type: "uint256[]" },
        ],
      },
      { name: "note", type: "string" },
    ],
  },
  {
    type: "error",
    name: "TooMuch",
    inputs: [
      { name: "why", type: "string" },
      { name: "amounts", type: "uint256[]" },
    ],
  },
]);

/** Bytes of one length: nothing, everything, chance, and lists whose offsets and counts nearly fit. */
function datasOf(length: number, random: Random): Hex[] {
  const word = () => random.pick([0n, 1n, 2n, 31n, 32n, 64n, 96n, 128n, 2n ** 256n - 1n]);
  const coder = AbiCoder.defaultAbiCoder();
  const words = coder.encode(
    Array.from({ length: 7 }, () => "uint256"),
    Array.from({ length: 7 }, word),
  );
  const lists = coder.encode(["uint256[]", "uint256[]"], [[], [1n]]);
  return [
    new Uint8Array(length),
    new Uint8Array(length).fill(0xff),
    random.bytes(length),
    hexToBytes(words).slice(0, length),
    Buffer.concat([hexToBytes(lists), random.bytes(length)]).subarray(0, length),
  ].map(bytesToHex);
}

function topicsOf(count: number, signature: Hash32, random: Random): Hash32[] {
  const account = () => zeroPadValue(bytesToHex(random.bytes(20)), 32);
  const others = Array.from({ length: count }, () =>
    random.pick([account(), `0x${"00".repeat(32)}`, bytesToHex(random.bytes(32))]),
  );
  return [signature, ...others].slice(0, count) as Hash32[];
}

/** Every reader of a log. */
const LOG_READERS: Readonly<Record<string, (log: JournaledLog) => unknown>> = {
  tokensMoved: (log) => tokensMoved([log], 0),
  transferOf: ({ topics, data }) => transferOf(topics, data),
  dexEventOf,
  tokenMovesOf: (log) =>
    tokenMovesOf(
      { transactions: [{ logs: [log] }] } as unknown as JournaledBlock,
      REGISTRY,
      () => false,
    ),
  decodeLog: ({ topics, data }) => decodeLog(topics, data),
  decodeLogByAbi: ({ topics, data }) => decodeLog(topics, data, ABI),
};

/** Every reader of calldata, or of what a contract gave back. */
const DATA_READERS: Readonly<Record<string, (data: Hex) => unknown>> = {
  single: (data) => decodeErc1155(ERC1155_TOPICS.transferSingle, data),
  batch: (data) => decodeErc1155(ERC1155_TOPICS.transferBatch, data),
  decodeForeignText: (data) => decodeForeignText(hexToBytes(data), 64),
  decodeUnits,
  decodeTransfer,
  revertReason: (data) => revertReason(hexToBytes(data)),
  revertText: (data) => revertText(hexToBytes(data)),
  decodeCall: (data) => decodeCall(data),
  decodeError: (data) => decodeError(data, ABI),
  decodeText,
  memoOfData,
  staking: (data) =>
    Object.values(STAKING_CONTRACTS).map((to) => decodeStakingCall(TOKEN, { to, data })),
};

/** Which readers throw. */
function throwing<T>(readers: Readonly<Record<string, (given: T) => unknown>>, given: T): string[] {
  return Object.entries(readers).flatMap(([name, read]) => {
    try {
      read(given);
      return [];
    } catch (error) {
      return [`${name}: ${String(error)} ${JSON.stringify(given)}`];
    }
  });
}

describe(`bytes of strangers, seed ${SEED}`, () => {
  it("are read or passed over in logs, whatever their length and topics are", () => {
    const random = createRandom(SEED);
    const faults: string[] = [];
    for (let length = 0; length <= MAX_BYTES; length++) {
      for (const data of datasOf(length, random)) {
        for (const signature of SIGNATURES) {
          for (const count of [4, random.integer(5)]) {
            const topics = topicsOf(count, signature, random);
            faults.push(...throwing(LOG_READERS, { address: TOKEN, topics, data }));
          }
        }
      }
    }
    expect(faults.slice(0, SHOWN)).toEqual([]);
  });

  it("are read or passed over in calldata and answers", () => {
    const random = createRandom(SEED);
    const faults: string[] = [];
    for (let length = 0; length <= MAX_BYTES; length++) {
      for (const data of datasOf(length, random)) {
        faults.push(...throwing(DATA_READERS, data));
        for (const selector of [random.pick(SELECTORS), random.pick(SELECTORS)]) {
          faults.push(...throwing(DATA_READERS, `${selector as Hex}${data.slice(2)}`));
        }
      }
    }
    expect(faults.slice(0, SHOWN)).toEqual([]);
  });

  it("move nothing where they say what cannot be read, and hide nothing that stands beside them", () => {
    const [from, to] = ["a1", "b2"].map((byte) => zeroPadValue(`0x${byte.repeat(20)}`, 32));
    const topics = [ERC20_TOPICS.transfer, from, to] as Hash32[];
    const good = { address: TOKEN, topics, data: `0x${"7".padStart(64, "0")}` } as const;
    // Not what a node gives, but what a reader that fails makes of anything.
    const bad = { ...good, topics: [...topics, "0xnone" as Hash32] };
    expect(tokensMoved([bad, good], 5)).toMatchObject([{ logIndex: 6, amountUnits: 7n }]);
  });

  it("are names as far as they are texts, in either form, without what no database takes", () => {
    const coder = AbiCoder.defaultAbiCoder();
    const asString = (bytes: string) => coder.encode(["bytes"], [bytes]);
    const answers: Readonly<Record<string, string | undefined>> = {
      // Maker's symbol() on Ethereum, from before strings.
      [`0x4d4b52${"00".repeat(29)}`]: "MKR",
      [`0x${"41".repeat(32)}`]: "A".repeat(32),
      [`0x${"00".repeat(32)}`]: "",
      [`0x41ff42${"00".repeat(29)}`]: "A\ufffdB",
      [coder.encode(["string"], ["\u00c9t\u00e9 \u{1f600}"])]: "\u00c9t\u00e9 \u{1f600}",
      [coder.encode(["string"], ["a\0b"])]: "a\ufffdb",
      [asString("0x61c3")]: "a\ufffd",
      [asString("0x61eda080")]: "a\ufffd\ufffd\ufffd",
      [asString("0x")]: "",
      [asString(`0x${"61".repeat(100)}`)]: "a".repeat(64),
      "0x": undefined,
      [`0x${"00".repeat(31)}20${"ff".repeat(32)}`]: undefined,
    };
    for (const [answer, text] of Object.entries(answers)) {
      const read = decodeForeignText(hexToBytes(answer), 64);
      expect([answer, read]).toEqual([answer, text]);
    }
  });

  it("burn nothing, and make nothing, where one or both accounts are left out", () => {
    const word = zeroPadValue(`0x${"a1".repeat(20)}`, 32) as Hash32;
    const data = `0x${"7".padStart(64, "0")}` as const;
    // Of three arguments each is a topic or a word: with fewer it is another event under the same name.
    for (const others of [[], [word]]) {
      const topics = [ERC20_TOPICS.transfer, ...others] as Hash32[];
      expect([others, tokensMoved([{ address: TOKEN, topics, data }], 0)]).toEqual([others, []]);
    }
  });
});
