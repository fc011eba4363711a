/** Simulated Cosmos transactions: what no signature can mend is refused as it would be in a block. */
import { createHash } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { parseAddress, toBech32, VALIDATOR_PREFIX } from "../../../chain/address.js";
import {
  type CosmosTransaction,
  decodeCosmosTransaction,
} from "../../../chain/cosmos/cosmos-transaction.js";
import { sha256 } from "../../../chain/hashes.js";
import { ZERO_HASH } from "../../../chain/hex.js";
import { simulateCosmos } from "../../../node/compose/simulation.js";
import { executeCosmosTransaction } from "../../../node/execution/cosmos/cosmos-executor.js";
import { signingInfo } from "../../../node/modules/slashing/signing.js";
import { Validators } from "../../../node/modules/staking/validator-record.js";
import { JournaledState } from "../../../node/state/journaled-state.js";
import { EMPTY_ACCOUNT } from "../../../node/store/account-record.js";
import type { StateReader } from "../../../node/store/state-reader.js";
import { type CosmJsRequest, signWithCosmJs } from "../../helpers/cosmos/cosmjs.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../helpers/cosmos/module-state.js";

const MNEMONIC = "test test test test test test test test test test test junk";
const sender = parseAddress(Wallet.fromPhrase(MNEMONIC).address);
const receiver = toBech32(parseAddress("0x70997970C51812dc3A010C7d01b50e0d17dc79C8"));
const { params } = stakedGenesis([100]);
const SEND = {
  typeUrl: "/cosmos.bank.v1beta1.MsgSend",
  value: {
    fromAddress: toBech32(sender),
    toAddress: receiver,
    amount: [{ denom: "atoken", amount: "7" }],
  },
};

function signed(options: Partial<CosmJsRequest>): CosmosTransaction {
  const request = { messages: [SEND], chainId: "chain_6940-1", ...options };
  const [answer] = signWithCosmJs(MNEMONIC, [request]);
  if (answer === undefined) throw new Error("nothing was signed");
  return decodeCosmosTransaction(answer.raw, { isSimulated: true });
}

/** @param nonces of the account, and behind what of it waits in the pool */
function simulate(tx: CosmosTransaction, { nonce, pending } = { nonce: 0n, pending: 0n }) {
  const { code, log } = simulated(tx, { nonce, pending });
  return { code, log };
}

const TIME_MS = 1_800_000_000_000;

/** Where the sender has coins, and nobody else has. */
const accountsAt = (nonce: bigint): StateReader => ({
  account: (address) =>
    address === sender ? { ...EMPTY_ACCOUNT, nonce, balanceAtoken: 10n ** 18n } : undefined,
  code: () => new Uint8Array(0),
  storage: () => new Uint8Array(0),
});

function simulated(tx: CosmosTransaction, { nonce, pending } = { nonce: 0n, pending: 0n }) {
  return simulateCosmos(tx, {
    params,
    pool: { pendingNonce: () => pending },
    view: { head: () => ({ height: 5, hash: ZERO_HASH, timeMs: TIME_MS }) },
    accounts: accountsAt(nonce),
  });
}

/** What a block makes of a transaction. */
function mined(tx: CosmosTransaction) {
  const state = new JournaledState(accountsAt(0n));
  const place = { ...params, state, height: 6, timeMs: TIME_MS };
  const outcome = executeCosmosTransaction({ tx, from: sender }, place);
  return outcome.included ? outcome.result : outcome.fault;
}

describe("a simulated transaction", () => {
  it("needs no gas limit, and no fee", () => {
    expect(simulate(signed({ gas: 0, fee: [] }))).toEqual({ code: 0, log: "" });
  });

  it("uses the gas that it will need signed, though CosmJS simulates without signature and fee", () => {
    const asked = simulated(signed({ isSimulated: true, gas: 0 }));
    if (!("gasUsed" in asked)) throw new Error(asked.log);
    const tx = signed({ gas: Number(asked.gasUsed) });
    expect(mined(tx)).toMatchObject({ code: 0, log: "" });
    // The SDK counts 112 bytes for what is missing (x/auth/ante/basic.go).
    const unsigned = signed({ isSimulated: true }).raw.length;
    const short = BigInt(unsigned + 112 - tx.raw.length) * 10n;
    expect(mined(signed({ gas: 99_999 }))).toMatchObject({ gasUsed: asked.gasUsed - short });
    // Who fills a signature in is asked for nothing more.
    expect(simulated(tx)).toMatchObject({ code: 0, gasUsed: asked.gasUsed - short });
  });

  it("may come behind those that wait in the pool, as it may be sent", () => {
    const nonces = { nonce: 5n, pending: 7n };
    const at = (nonce: bigint) => simulate({ ...signed({}), nonce }, nonces);
    // At the head's sequence it takes the place of what waits there.
    for (const nonce of [5n, 6n, 7n]) expect(at(nonce)).toEqual({ code: 0, log: "" });
    for (const nonce of [4n, 8n]) {
      expect(at(nonce)).toEqual({
        code: 32,
        log: `account sequence mismatch, expected 7, got ${nonce}: incorrect account sequence`,
      });
    }
  });

  it("is refused with code 18 where it has no message", () => {
    expect(simulate({ ...signed({}), messages: [], signers: [] })).toEqual({
      code: 18,
      log: "must contain at least one message: invalid request",
    });
  });

  it("is refused for what its signed bytes would be refused for", () => {
    const tx = signed({});
    const cases: [CosmosTransaction, number][] = [
      [signed({ memo: "x".repeat(257) }), 12],
      [signed({ granter: toBech32(sender) }), 37],
      [{ ...tx, extensionOptions: ["/cosmos.Foo"] }, 31],
      [{ ...tx, isUnordered: true }, 37],
      [{ ...tx, feePayer: receiver }, 37],
    ];
    for (const [one, code] of cases) expect([code, simulate(one).code]).toEqual([code, code]);
  });

  it("is refused for a key that no account here has, and needs none", () => {
    // A CosmJS wallet of the Cosmos Hub's kind sends its own; the SDK's client an empty one where it has no key.
    const tx = signed({});
    const publicKeyTypeUrl = "/cosmos.crypto.secp256k1.PubKey";
    const itsAddress = createHash("ripemd160").update(sha256(tx.publicKey)).digest("hex");
    expect(
      simulate({ ...tx, publicKeyTypeUrl, signers: [parseAddress(`0x${itsAddress}`)] }),
    ).toEqual({
      code: 8,
      log: "/cosmos.crypto.secp256k1.PubKey is no ethsecp256k1 key of 33 bytes: accounts of this chain have Ethereum's keys (coin type 60): invalid pubkey",
    });
    const publicKey = new Uint8Array(0);
    for (const empty of [publicKeyTypeUrl, tx.publicKeyTypeUrl, undefined]) {
      expect(simulate({ ...tx, publicKeyTypeUrl: empty, publicKey }).code).toBe(0);
    }
  });

  it("may name the signer's own key as CosmJS' simulations name all keys", () => {
    const tx = { ...signed({}), publicKeyTypeUrl: "/cosmos.crypto.secp256k1.PubKey" };
    expect(simulate(tx)).toEqual({ code: 0, log: "" });
    expect(simulate({ ...tx, publicKey: tx.publicKey.slice(1) }).code).toBe(8);
    expect(simulate({ ...tx, publicKeyTypeUrl: "/cosmos.crypto.ed25519.PubKey" }).code).toBe(8);
  });

  it("sees the time of the head, as the SDK's does: the next block may come a moment later", () => {
    const chain = new ModuleChain(
      stakedGenesis([40, 100], {
        "slashing.signed_blocks_window": "2",
        "slashing.downtime_jail_duration": "30s",
      }),
    );
    const silent = accountAt(0);
    const validator = new Validators(chain.state).of(silent);
    const votes = new Validators(chain.state).inConsensus().map((one) => ({
      consensusAddress: one.consensusAddress,
      power: one.consensusPower,
      isSigned: one.operator !== silent,
    }));
    for (let height = 1; height <= 6; height++) chain.endBlock({ facts: { votes } });
    const untilMs = signingInfo(chain.state, validator.consensusAddress)?.jailedUntilMs ?? 0;
    const value = { validatorAddr: toBech32(silent, VALIDATOR_PREFIX) };
    const messages = [{ typeUrl: "/cosmos.slashing.v1beta1.MsgUnjail", value }];
    const tx = signed({ messages, gas: 0, fee: [] });
    const at = (timeMs: number) =>
      simulateCosmos(tx, {
        params: chain.genesis.params,
        pool: { pendingNonce: (address) => chain.state.accountNow(address)?.nonce ?? 0n },
        view: { head: () => ({ height: chain.height, hash: ZERO_HASH, timeMs }) },
        accounts: {
          account: (address) => chain.state.accountNow(address),
          code: (hash) => chain.state.codeNow(hash),
          storage: (address, slot) => chain.state.storageNow(address, slot),
        },
      });
    expect(untilMs).toBeGreaterThan(chain.timeMs);
    expect(at(untilMs - 1)).toMatchObject({ codespace: "slashing", code: 4 });
    expect(at(untilMs).code).toBe(0);
  });
});
