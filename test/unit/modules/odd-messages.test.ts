/**
 * Messages of every kind with odd values in every field: each is refused or carried out, in words. What threw
 * anything else would be in nobody's block, and a proposer that did not know would propose nothing.
 */
import { describe, expect, it } from "@jest/globals";
import { type Address, toBech32, VALIDATOR_PREFIX } from "../../../chain/address.js";
import { staticCosmosFault, signatureFault } from "../../../chain/cosmos/ante.js";
import {
  type AnyMessage,
  decodeAny,
  encodeAny,
  type FieldSchema,
  type MessageSchema,
  type ProtoMessage,
  type ProtoValue,
} from "../../../chain/cosmos/field-schema.js";
import { allSchemas, schemaOf } from "../../../chain/cosmos/message-schemas.js";
import { ChainError, present } from "../../../chain/errors.js";
import { encodeRlp } from "../../../chain/encoding/rlp-writer.js";
import { readRlp } from "../../../chain/encoding/rlp-reader.js";
import { changeItem, readChange } from "../../../chain/records/block-items.js";
import type { BalanceChange } from "../../../chain/balance-change.js";
import { executeCosmosTransaction } from "../../../node/execution/cosmos/cosmos-executor.js";
import { Proposals } from "../../../node/modules/gov/proposal-record.js";
import { submitProposal } from "../../../node/modules/gov/proposing.js";
import { voteOn } from "../../../node/modules/gov/voting.js";
import { handlerOf } from "../../../node/modules/message-router.js";
import { MODULE_ACCOUNTS } from "../../../node/modules/system-storage.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../helpers/cosmos/module-state.js";
import { chance, createRandom, type Random } from "../../helpers/random.js";

const SEED = Number(process.env["CAUSEWAY_TEST_SEED"] ?? 20_261_122);
const ROUNDS = 150;
const TOKEN = 10n ** 18n;
const ALICE = accountAt(20);

const TEXTS = [
  "",
  "0",
  "1",
  "-1",
  "1.0",
  "0.5",
  "1e9",
  "abc",
  "atoken",
  "100000000000000000000",
  "9".repeat(77),
  "9".repeat(78),
  "9".repeat(300),
  "x".repeat(300),
  "\u0000",
  "é\u2028<",
  "{}",
  '{"title":"other"}',
  "mint",
  "gov",
  "staking",
  "MaxValidators",
  "depositparams",
  '{"min_deposit":[{"denom":"atoken","amount":"0"}]}',
];
const NUMBERS = [0n, 1n, 2n, 3n, 4n, 5n, 9n, 1_000n, 2n ** 31n - 1n, 2n ** 53n, 2n ** 63n - 1n];
const ADDRESSES = [
  toBech32(ALICE),
  toBech32(accountAt(0)),
  toBech32(MODULE_ACCOUNTS.gov),
  toBech32(MODULE_ACCOUNTS.staking),
  toBech32(accountAt(0), VALIDATOR_PREFIX),
  toBech32(accountAt(1), VALIDATOR_PREFIX),
  toBech32(accountAt(77), VALIDATOR_PREFIX),
  toBech32(ALICE, VALIDATOR_PREFIX),
  "nonsense",
  "",
];

/** Values at random, by the kinds of fields. */
class OddMessages {
  constructor(
    private readonly random: Random,
    private readonly sender: Address,
  ) {}

  any(typeUrl: string, depth = 0): AnyMessage {
    const schema = present(schemaOf(typeUrl), typeUrl);
    const message: Record<string, ProtoValue> = { ...this.message(schema, depth) };
    const { signer } = schema;
    // Somebody has to sign; the gov account what only it may do.
    if (signer !== undefined && typeof message[signer] === "string") {
      const isOperator = signer === "validator_address" || signer === "validator_addr";
      message[signer] = isOperator
        ? toBech32(this.sender, VALIDATOR_PREFIX)
        : toBech32(this.sender);
    }
    return { typeUrl, schema, message };
  }

  private message({ fields }: MessageSchema, depth: number): ProtoMessage {
    return Object.fromEntries(fields.map((field) => [field.name, this.field(field, depth)]));
  }

  private field(field: FieldSchema, depth: number): ProtoValue {
    const { random } = this;
    if (field.most === undefined) return this.value(field, depth);
    const count = random.pick([0, 1, 1, 1, 2, 3]);
    const all = Array.from({ length: Math.min(count, field.most) }, () => this.value(field, depth));
    return all.filter((one) => one !== undefined);
  }

  private value(field: FieldSchema, depth: number): ProtoValue {
    const { random } = this;
    const isOneOfUs = /address|depositor|voter|proposer|recipient|authority|dest/.test(field.name);
    switch (field.kind) {
      case "string":
        if (isOneOfUs && chance(random, 0.9)) return random.pick(ADDRESSES);
        if (field.name === "denom" && chance(random, 0.8)) return "atoken";
        return random.pick(TEXTS);
      case "decimal":
        return random.pick([...TEXTS, `${TOKEN}`, `${TOKEN / 2n}`]);
      case "bytes":
        return random.bytes(random.pick([0, 1, 32, 33]));
      case "int64":
        return random.pick([...NUMBERS, -1n, -(2n ** 63n)]);
      case "uint64":
        return random.pick([...NUMBERS, 2n ** 64n - 1n]);
      case "int32":
      case "uint32":
      case "enum":
        return random.pick([0, 1, 2, 3, 4, 9, 2 ** 31 - 1]);
      case "bool":
        return chance(random, 0.5);
      case "any":
        if (depth > 3 || chance(random, 0.1)) return undefined;
        return this.any(random.pick(URLS), depth + 1);
      case "message":
        if (chance(random, 0.1)) return undefined;
        return this.message(present(field.schema, field.name), depth + 1);
      default:
        return chance(random, 0.2)
          ? undefined
          : { seconds: random.pick([...NUMBERS, -1n]), nanos: random.pick([0, 5, 2 ** 31 - 1]) };
    }
  }
}

const CONTENTS = [
  "/cosmos.gov.v1beta1.TextProposal",
  "/cosmos.params.v1beta1.ParameterChangeProposal",
  "/cosmos.distribution.v1beta1.CommunityPoolSpendProposal",
  "/cosmos.upgrade.v1beta1.SoftwareUpgradeProposal",
  "/cosmos.upgrade.v1beta1.CancelSoftwareUpgradeProposal",
  "/cosmos.crypto.ed25519.PubKey",
];
/** Type URLs of the messages that a transaction may carry. */
const MESSAGES = allSchemas()
  .filter(({ signer }) => signer !== undefined)
  .map(({ name }) => `/${name}`);
const URLS = [...MESSAGES, ...CONTENTS];

/** Runs a message as a transaction of its signer would. @returns its code; undefined for no transaction */
function codeOf(chain: ModuleChain, one: AnyMessage, from: Address): number | undefined {
  let message: AnyMessage;
  try {
    message = decodeAny(encodeAny(one), schemaOf);
  } catch (error) {
    if (error instanceof ChainError) return undefined;
    throw error;
  }
  const tx = {
    raw: new Uint8Array(300),
    bodyBytes: new Uint8Array(0),
    authInfoBytes: new Uint8Array(0),
    messages: [message],
    gasLimit: 25_000_000n,
    fee: [],
    nonce: chain.state.accountNow(from)?.nonce ?? 0n,
    signature: new Uint8Array(64),
    signers: [from],
    extensionOptions: [],
    signMode: 127,
    feeAtoken: 0n,
    feePayer: "",
    feeGranter: "",
    memo: "",
    timeoutHeight: 0n,
  } as never;
  const limits = { cosmosChainId: "chain_6940-1", chainId: 6940n, maxTransactionGas: 30_000_000n };
  staticCosmosFault(tx, limits);
  signatureFault(tx, limits);
  const { params } = chain.genesis;
  const place = { ...params, state: chain.state, timeMs: chain.timeMs, height: chain.height + 1 };
  const outcome = executeCosmosTransaction({ tx, from }, { ...place, isSimulated: true });
  if (!outcome.included) return outcome.fault.code;
  expect(storedChanges(outcome.changes)).toEqual(outcome.changes);
  return outcome.result.code;
}

/** What a block's record says of changes. */
function storedChanges(changes: readonly BalanceChange[]): BalanceChange[] {
  const record = encodeRlp(changes.map(changeItem));
  return readRlp(record, (reader) => reader.items(readChange));
}

describe("odd messages", () => {
  it("are refused or carried out, and so are proposals of them", () => {
    const random = createRandom(SEED);
    const chain = new ModuleChain(
      stakedGenesis([100, 50], { "gov.voting_period": "4s", "gov.expedited_voting_period": "2s" }),
    );
    for (const account of [ALICE, accountAt(0), MODULE_ACCOUNTS.gov]) {
      chain.mint(account, 1_000_000n * TOKEN);
    }
    const codes = new Map<string, number>();
    for (let round = 0; round < ROUNDS; round++) {
      for (const typeUrl of MESSAGES) {
        const from = random.pick([ALICE, ALICE, accountAt(0)]);
        const code = codeOf(chain, new OddMessages(random, from).any(typeUrl), from);
        const key = code === undefined ? "undecodable" : code === 0 ? "done" : "refused";
        codes.set(key, (codes.get(key) ?? 0) + 1);
      }
      propose(chain, random);
      for (const proposal of new Proposals(chain.state).listWaiting()) {
        chain.run((context) => {
          const options = [{ option: 1, weight: TOKEN }];
          voteOn(context, proposal.id, { voter: accountAt(0), options, metadata: "" });
        });
      }
      chain.endBlock({ seconds: 2 });
      for (const { type, values } of chain.events) {
        if (type !== "active_proposal") continue;
        const { proposal_result: result = "" } = values;
        codes.set(result, (codes.get(result) ?? 0) + 1);
      }
      chain.events.length = 0;
    }
    console.log(`odd messages: seed ${SEED} (CAUSEWAY_TEST_SEED)`, Object.fromEntries(codes));
    for (const key of ["done", "refused", "proposal_failed"]) {
      expect([key, codes.get(key) ?? 0]).not.toEqual([key, 0]);
    }
  });
});

/** A proposal of odd messages, which the gov account signs. */
function propose(chain: ModuleChain, random: Random): void {
  const odd = new OddMessages(random, MODULE_ACCOUNTS.gov);
  const read = Array.from({ length: 1 + random.integer(2) }, () => odd.any(random.pick(URLS)));
  const messages = read.flatMap((one) => {
    try {
      return [decodeAny(encodeAny(one), schemaOf)];
    } catch (error) {
      if (error instanceof ChainError) return [];
      throw error;
    }
  });
  const texts = { title: "t", summary: "s", metadata: "words" };
  const submission = { proposer: ALICE, messages, initialDepositAtoken: 100n * TOKEN, ...texts };
  chain.run((context) => {
    submitProposal(context, { ...submission, isExpedited: chance(random, 0.3) }, handlerOf);
  });
}
