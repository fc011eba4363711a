/** What a signer refuses by itself. */
import { describe, expect, it } from "@jest/globals";
import { BURN_ADDRESS, parseAddress } from "../../../../chain/address.js";
import { encodeTransfer } from "../../../../chain/evm/erc20.js";
import { keccak256 } from "../../../../chain/hashes.js";
import { bytesToHex, hexToBytes, parseHex } from "../../../../chain/hex.js";
import { SWITCH_UNTOUCHED } from "../../../../ledger/kill-switch/kill-switch-level.js";
import { TREASURY } from "../../../../ledger/journal/accounts.js";
import { hashPolicy } from "../../../../ledger/policy/policy.js";
import { KillSwitchFileError } from "../../../../ledger/kill-switch/kill-switch-file.js";
import type { SignerRules } from "../../../../withdrawal-worker/signers/policy-signer.js";
import { createKeyHolder } from "../../../../withdrawal-worker/signers/keystore-holder.js";
import type {
  KeyHolder,
  SigningIntent,
} from "../../../../withdrawal-worker/signers/signer-port.js";
import { PERMISSIVE, type RuleFiles, signerOver } from "../../../helpers/keys/signing.js";
import { APPROVERS, policyOf, signatureOf } from "../../../integration/policy/terms.js";
import { toWithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { ADDRESS, cancelOn, KEY, LIMITS, PAYEE, paymentOn } from "./intents.js";
import { codes, open, signed } from "./opened-signer.js";

const { signal } = new AbortController();
const to = (destination: SigningIntent["to"]): SigningIntent => ({
  ...paymentOn(1n),
  to: destination,
  destination,
});

describe("a signer's own rules", () => {
  it("stop at the switch's level, cancelling transfers included", async () => {
    for (const [level, expected] of [
      ["stop-new", "signed"],
      ["stop-sign", "STOPPED"],
      ["stop-broadcast", "STOPPED"],
    ] as const) {
      const signer = open({ killSwitch: { ...SWITCH_UNTOUCHED, level, reason: "drill" } });
      expect(await signed(signer, paymentOn(1n), cancelOn(2n))).toEqual([expected, expected]);
      expect(signer.review([paymentOn(1n)]).map((refusal) => refusal?.code)).toEqual([
        expected === "signed" ? undefined : expected,
      ]);
    }
  });

  it("refuse what the treasury gives to a stranger before it has a nonce", () => {
    const cold = parseAddress(`0x${"c0".repeat(20)}`);
    const asset = { sweepMinimumUnits: 1n, sweepFeeMaxAtoken: 1n, coldAddress: cold };
    const assets = new Map([["TOKEN", { ...asset, band: undefined }]]);
    const policy = hashPolicy({
      ...PERMISSIVE.policy,
      treasury: { topUpMaxAtoken: 10n ** 18n, assets },
    });
    const given = { ...paymentOn(1n), customerId: TREASURY };
    const payments = [given, { ...given, addressIndex: 3 }, { ...given, destination: cold }];
    const reviewed = (rules: Partial<SignerRules>) =>
      open({ policy }, rules)
        .review(payments)
        .map((refusal) => refusal?.code);
    const [refused, allowed] = ["FORBIDDEN_DESTINATION", undefined];
    expect(reviewed({})).toEqual([refused, refused, allowed]);
    const depositAddressAt = (index: number) => (index === 3 ? PAYEE : ADDRESS);
    expect(reviewed({ depositAddressAt })).toEqual([refused, allowed, allowed]);
  });

  it("stop between two signatures, however many were asked for", async () => {
    const files: RuleFiles = { policy: PERMISSIVE, killSwitch: SWITCH_UNTOUCHED };
    const holder = createKeyHolder(KEY);
    const asked: bigint[] = [];
    const slow: KeyHolder = {
      ...holder,
      signTransaction(intent, options) {
        asked.push(intent.nonce);
        if (asked.length === 2) files.killSwitch = { ...SWITCH_UNTOUCHED, level: "stop-sign" };
        return holder.signTransaction(intent, options);
      },
    };
    const signer = signerOver(slow, { limits: LIMITS, chainId: 6940n }, files);
    const intents = [paymentOn(1n), paymentOn(2n), paymentOn(3n), cancelOn(4n)];
    expect(await signed(signer, ...intents)).toEqual(["signed", "signed", "STOPPED", "STOPPED"]);
    expect(asked).toEqual([1n, 2n]);
    files.killSwitch = SWITCH_UNTOUCHED;
    expect(await signed(signer, ...intents.slice(2))).toEqual(["signed", "signed"]);
  });

  it("sign no more by a policy that a person has changed between two signatures", async () => {
    const files: RuleFiles = { policy: PERMISSIVE, killSwitch: SWITCH_UNTOUCHED };
    const holder = createKeyHolder(KEY);
    const slow: KeyHolder = {
      ...holder,
      signTransaction(intent, options) {
        files.policy = policyOf({ maximumUnits: 100n });
        return holder.signTransaction(intent, options);
      },
    };
    const signer = signerOver(slow, { limits: LIMITS, chainId: 6940n }, files);
    const intents = [paymentOn(1n), paymentOn(2n), paymentOn(3n, 100n)];
    expect(await signed(signer, ...intents)).toEqual([
      "signed",
      "POLICY_CHANGED",
      "POLICY_CHANGED",
    ]);
    // Asked again, each is judged by what it says now.
    expect(await signed(signer, ...intents.slice(1))).toEqual(["ABOVE_MAXIMUM", "signed"]);
  });

  it("ask for no more once the time for it is over, but for one", async () => {
    const holder = createKeyHolder(KEY);
    const asked: bigint[] = [];
    const slow: KeyHolder = {
      ...holder,
      signTransaction(intent, options) {
        asked.push(intent.nonce);
        return holder.signTransaction(intent, options);
      },
    };
    const files: RuleFiles = { policy: PERMISSIVE, killSwitch: SWITCH_UNTOUCHED };
    const signer = signerOver(slow, { limits: LIMITS, chainId: 6940n }, files);
    const intents = [paymentOn(1n), paymentOn(2n), cancelOn(3n)];
    const first = await signer.sign(intents, { signal, withinMs: 0 });
    expect([codes(first), asked]).toEqual([["signed", "postponed", "postponed"], [1n]]);
    expect(signer.trouble()).toBeUndefined();
    const rest = await signer.sign(intents.slice(1), { signal, withinMs: 600_000 });
    expect([codes(rest), asked]).toEqual([
      ["signed", "signed"],
      [1n, 2n, 3n],
    ]);
  });

  it("stop while the switch or the policy cannot be read", async () => {
    const unreadable = () => {
      throw new KillSwitchFileError("KILL_SWITCH_UNREADABLE", "gone");
    };
    for (const rules of [{ readKillSwitch: unreadable }, { readPolicy: unreadable }]) {
      expect(await signed(open({}, rules), paymentOn(1n))).toEqual(["POLICY_UNREADABLE"]);
    }
  });

  it("pay no wallet of ours, no contract of a token, nobody's and none of the chain's accounts", async () => {
    const token = parseAddress(`0x${"70".repeat(20)}`);
    const signer = open({}, { own: { wallets: [ADDRESS], tokenContracts: [token] } });
    const forbidden = [
      ADDRESS,
      token,
      BURN_ADDRESS,
      parseAddress(`0x${"00".repeat(20)}`),
      parseAddress(`0x${"00".repeat(19)}01`),
      parseAddress("0x0000000000000000000000000000000000fee001"),
    ];
    for (const destination of forbidden) {
      expect(await signed(signer, to(destination))).toEqual(["FORBIDDEN_DESTINATION"]);
    }
    expect(await signed(signer, to(PAYEE))).toEqual(["signed"]);
  });

  it("bound the amount and the customer's destinations", async () => {
    const amountUnits = paymentOn(1n).amountUnits;
    expect(
      await signed(open({ policy: policyOf({ maximumUnits: amountUnits - 1n }) }), paymentOn(1n)),
    ).toEqual(["ABOVE_MAXIMUM"]);
    expect(
      await signed(open({ policy: policyOf({ minimumUnits: amountUnits + 1n }) }), paymentOn(1n)),
    ).toEqual(["BELOW_MINIMUM"]);
    const customers = new Map([["alice", new Set([ADDRESS])]]);
    const policy = policyOf({}, { allowList: { delayHours: 0, others: "any", customers } });
    expect(await signed(open({ policy }), paymentOn(1n))).toEqual(["DESTINATION_NOT_LISTED"]);
  });

  it("bound a payment's fee, but for one that costs no more than what was signed for its nonce", async () => {
    const dear = paymentOn(1n);
    const feeAtoken = dear.gasLimit * dear.gasPriceAtoken;
    const treasury = { topUpMaxAtoken: 10n ** 18n, assets: new Map() };
    const files = { policy: hashPolicy({ ...PERMISSIVE.policy, treasury }) };
    const bounded = (feePerPayoutAtoken: bigint) =>
      open(files, { limits: { ...LIMITS, feePerPayoutAtoken }, depositAddressAt: () => PAYEE });
    const signer = bounded(feeAtoken - 1n);
    const refusal = { kind: "refused", code: "FEE_ABOVE_MAXIMUM", isLasting: false };
    const given = { ...dear, customerId: TREASURY, addressIndex: 3 };
    expect(await signer.sign([dear], { signal })).toMatchObject([refusal]);
    expect(await signed(signer, given)).toEqual(["FEE_ABOVE_MAXIMUM"]);
    expect(await signed(bounded(feeAtoken), dear, given)).toEqual(["signed", "signed"]);
    // From a time when more was allowed.
    const before = async (fields: Partial<SigningIntent> = {}, key = KEY) => {
      const intent = { ...dear, ...fields };
      return bytesToHex(await createKeyHolder(key).signTransaction(intent, { signal }));
    };
    const cheaper = { gasLimit: dear.gasLimit - 1n };
    const proofs = [
      await before(),
      await before({ gasLimit: 2n * dear.gasLimit, gasPriceAtoken: dear.gasPriceAtoken }),
      await before(cheaper),
      await before({ nonce: 2n }),
      await before({ chainId: 1n }),
      await before({}, keccak256(KEY)),
      parseHex("0x01"),
    ];
    const answers = [];
    for (const signedBefore of proofs) {
      answers.push(...(await signed(signer, { ...dear, signedBefore })));
    }
    const refused = proofs.slice(2).map(() => "FEE_ABOVE_MAXIMUM");
    expect(answers).toEqual(["signed", "signed", ...refused]);
  });

  it("let a transfer of nothing cost what the chain asks for, without gas that it does not need", async () => {
    const limits = { ...LIMITS, gasLimitMax: 1_000_000n, feePerPayoutAtoken: 1n };
    const cancel = (gasLimit: bigint) => ({ ...cancelOn(1n), gasLimit });
    const asked = [cancel(21_000n), cancel(210_000n), cancel(210_001n)];
    expect(await signed(open({}, { limits }), ...asked)).toEqual([
      "signed",
      "signed",
      "FEE_ABOVE_MAXIMUM",
    ]);
  });

  it("count only signatures of different approvers over this payment under this policy", async () => {
    const policy = policyOf(
      { approvals: [{ aboveUnits: 0n, needed: 2, signed: true }] },
      { approvers: APPROVERS.slice(0, 2).map(({ name, publicKey }) => ({ name, publicKey })) },
    );
    const signer = open({ policy }, { chainId: 31_337n });
    const payment = { ...paymentOn(1n), chainId: 31_337n };
    const asked = { ...payment, id: toWithdrawalId(payment.withdrawalId) };
    const by = (approver: number) => signatureOf(approver, asked, policy);
    const chain = (await import("../../../helpers/chains/fake-chain.js")).FAKE_CHAIN_ID;
    const onChain = { ...payment, chainId: chain };
    const right = open({ policy }, { chainId: chain });
    for (const approvals of [[], [by(0)], [by(0), by(0)], [by(0), by(2)]]) {
      expect(await signed(right, { ...onChain, approvals })).toEqual(["APPROVALS_MISSING"]);
    }
    const approvals = [by(0), by(1)];
    expect(await signed(right, { ...onChain, approvals })).toEqual(["signed"]);
    // Of another chain, of another withdrawal: a replay.
    expect(await signed(signer, { ...payment, approvals })).toEqual(["APPROVALS_MISSING"]);
    const other = { ...onChain, withdrawalId: "wd_other", approvals };
    expect(await signed(right, other)).toEqual(["APPROVALS_MISSING"]);
  });

  it("count a person with two keys once, and a key under two names, too", async () => {
    const keys = APPROVERS.map(({ publicKey }) => publicKey);
    const [first = "", second = "", third = ""] = keys;
    const chainId = (await import("../../../helpers/chains/fake-chain.js")).FAKE_CHAIN_ID;
    const policy = policyOf(
      { approvals: [{ aboveUnits: 0n, needed: 2, signed: true }] },
      {
        approvers: [
          { name: "ann", publicKey: first },
          { name: "ann", publicKey: second },
          { name: "ben", publicKey: first },
          { name: "cleo", publicKey: third },
        ],
      },
    );
    const payment = { ...paymentOn(1n), chainId };
    const asked = { ...payment, id: toWithdrawalId(payment.withdrawalId) };
    const by = (approver: number) => signatureOf(approver, asked, policy);
    const signer = open({ policy }, { chainId });
    const both = { ...payment, approvals: [by(0), by(1)] };
    expect(await signed(signer, both)).toEqual(["APPROVALS_MISSING"]);
    expect(await signed(signer, { ...payment, approvals: [by(1), by(2)] })).toEqual(["signed"]);
  });

  it("sign a token's transfer to its contract, and nothing else to it", async () => {
    const token = parseAddress(`0x${"70".repeat(20)}`);
    const signer = open(
      {},
      {
        own: { wallets: [ADDRESS], tokenContracts: [token] },
        contractOf: (asset) => (asset === "USDX" ? token : undefined),
      },
    );
    const transfer = (amountUnits: bigint, destination = PAYEE): SigningIntent => ({
      ...paymentOn(1n),
      asset: "USDX",
      to: token,
      valueAtoken: 0n,
      amountUnits: 5n,
      gasLimit: 60_000n,
      data: hexToBytes(encodeTransfer({ to: destination, amountUnits })),
    });
    expect(await signed(signer, transfer(5n))).toEqual(["signed"]);
    expect(await signed(signer, transfer(6n))).toEqual(["wrong"]);
    expect(await signed(signer, transfer(5n, ADDRESS))).toEqual(["wrong"]);
    expect(await signed(signer, { ...transfer(5n), valueAtoken: 1n })).toEqual(["wrong"]);
    expect(await signed(signer, { ...transfer(5n), to: PAYEE })).toEqual(["wrong"]);
  });
});

describe("a token that was listed behind their start", () => {
  it("is refused for now: another process may know its contract, and its nonce can be given up", async () => {
    const token = parseAddress(`0x${"70".repeat(20)}`);
    const signer = open({}, { contractOf: () => undefined });
    const transfer: SigningIntent = {
      ...paymentOn(1n, 5n),
      asset: "USDX",
      to: token,
      valueAtoken: 0n,
      gasLimit: 60_000n,
      data: hexToBytes(encodeTransfer({ to: PAYEE, amountUnits: 5n })),
    };
    const refusal = { kind: "refused", code: "UNKNOWN_ASSET", isLasting: false };
    expect(await signer.sign([transfer], { signal })).toMatchObject([refusal]);
    expect(signer.review([transfer])).toMatchObject([refusal]);
    expect(await signed(signer, { ...cancelOn(1n), asset: "USDX" })).toEqual(["signed"]);
  });
});
