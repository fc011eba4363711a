/**
 * What an exchange allows itself to pay, as its policy file says it. Pure: the terms, their
 * canonical text and hash, and the rules that need nothing but a request and the policy.
 */
import type { Address } from "../../chain/address.js";
import { sha256Hex } from "../../chain/hashes.js";
import type { Atoken } from "../../chain/units.js";
import { NATIVE_ASSET, TREASURY } from "../journal/accounts.js";

/** Whom a limit counts for. */
export const LIMIT_SUBJECTS = ["customer", "asset", "destination", "wallet"] as const;

/** One of `LIMIT_SUBJECTS`. */
export type LimitSubject = (typeof LIMIT_SUBJECTS)[number];

/** A limit on what is asked for within a window. */
export interface Limit {
  readonly by: LimitSubject;
  /** "day" is the UTC day; else the last so many seconds. */
  readonly window: "day" | number;
  /** Sum of amounts in the window, in the asset's smallest unit; undefined without such a bound. */
  readonly maxUnits: bigint | undefined;
  /** Withdrawals in the window; undefined without such a bound. */
  readonly maxCount: number | undefined;
}

/** Amounts above which persons have to agree. */
export interface ApprovalRule {
  /** A larger amount needs them. */
  readonly aboveUnits: bigint;
  /** How many keys have to approve; none of them the one that asked. */
  readonly needed: number;
  /** Only approvals signed by one of the policy's approvers count. */
  readonly signed: boolean;
}

/** Rules of one asset; amounts in its smallest unit. */
export interface AssetRules {
  readonly minimumUnits: bigint;
  /** Most of one withdrawal; undefined without a bound. */
  readonly maximumUnits: bigint | undefined;
  /** Charged to the customer on top of the amount. */
  readonly feeUnits: bigint;
  /** Most that the signer signs within 24 hours, whatever the ledger says; undefined without one. */
  readonly signerDayMaxUnits: bigint | undefined;
  readonly limits: readonly Limit[];
  /** Ascending by amount. */
  readonly approvals: readonly ApprovalRule[];
}

/** Which destinations a customer may be paid to. */
export interface AllowList {
  /** A destination that was not on the list before is paid only so long after it was listed. */
  readonly delayHours: number;
  /** Where customers without a list may be paid: to every destination, or nowhere. */
  readonly others: "any" | "none";
  readonly customers: ReadonlyMap<string, ReadonlySet<Address>>;
}

/** A person whose signature counts. */
export interface Approver {
  readonly name: string;
  /** Ed25519, 64 hex digits. */
  readonly publicKey: string;
}

/** The service that is asked about each withdrawal before it is paid. */
export interface Screening {
  readonly url: string;
  readonly timeoutMs: number;
  /** How many approvals an answer "review" asks for. */
  readonly reviewApprovals: number;
}

/** What the treasury does with one asset; amounts in its smallest unit. */
export interface TreasuryAsset {
  /** A smaller balance of a deposit address stays there. */
  readonly sweepMinimumUnits: bigint;
  /** Most that the network fee of one sweep may come to, atoken. */
  readonly sweepFeeMaxAtoken: Atoken;
  /** Where what the hot wallets hold beyond their band goes; undefined for nowhere. */
  readonly coldAddress: Address | undefined;
  /** The hot wallets' band, all of them together; undefined without one. */
  readonly band: TreasuryBand | undefined;
}

/** Below low persons are asked for a refill, above high the rest goes to cold storage: to target. */
export interface TreasuryBand {
  readonly lowUnits: bigint;
  readonly targetUnits: bigint;
  readonly highUnits: bigint;
}

/** What the exchange may move between its own addresses. */
export interface TreasuryRules {
  /** Most gas money that one sweep gives to a deposit address. */
  readonly topUpMaxAtoken: Atoken;
  /** By symbol; an asset that is not here is left alone. */
  readonly assets: ReadonlyMap<string, TreasuryAsset>;
}

/** A whole policy. */
export interface Policy {
  /** By symbol; `DEFAULT_ASSET` has the rules of assets without their own. */
  readonly assets: ReadonlyMap<string, AssetRules>;
  readonly allowList: AllowList;
  readonly approvers: readonly Approver[];
  readonly screening: Screening | undefined;
  /** Undefined where nothing is moved: files from before may leave it out. */
  readonly treasury?: TreasuryRules | undefined;
}

/** A policy with the name that decisions carry. */
export interface HashedPolicy {
  readonly policy: Policy;
  /** SHA-256 of `canonicalText`, 64 hex digits: the layout of the file does not count. */
  readonly hash: string;
  readonly text: string;
}

/** No asset can have this symbol. */
export const DEFAULT_ASSET = "*";

const NO_RULES: AssetRules = {
  minimumUnits: 0n,
  maximumUnits: undefined,
  feeUnits: 0n,
  signerDayMaxUnits: undefined,
  limits: [],
  approvals: [],
};

/** The policy of a new home: it forbids nothing. */
export const PERMISSIVE_POLICY: Policy = {
  assets: new Map([[DEFAULT_ASSET, NO_RULES]]),
  allowList: { delayHours: 24, others: "any", customers: new Map() },
  approvers: [],
  screening: undefined,
};

/** What is left out is not guessed at: of an asset that a policy says nothing of, nothing is paid. */
const UNNAMED: AssetRules = { ...NO_RULES, maximumUnits: 0n };

/** Rules of an asset. */
export function rulesOf({ assets }: Policy, asset: string): AssetRules {
  return assets.get(asset) ?? assets.get(DEFAULT_ASSET) ?? UNNAMED;
}

/** A request as rules see it. */
export interface JudgedRequest {
  readonly customerId: string;
  readonly asset: string;
  readonly destination: Address;
  readonly amountUnits: bigint;
}

/** Codes of pure rules that a request breaks. */
export type BrokenRule = "BELOW_MINIMUM" | "ABOVE_MAXIMUM" | "DESTINATION_NOT_LISTED";

/**
 * The first rule about amount and destination that a request breaks of which nothing is signed yet;
 * undefined for none.
 */
export function brokenRule(policy: Policy, request: JudgedRequest): BrokenRule | undefined {
  const broken = brokenSigningRule(policy, request);
  if (broken !== undefined) return broken;
  const isAbove = isAboveDay(policy, request) || isAboveWallets(policy, request);
  return isAbove ? "ABOVE_MAXIMUM" : undefined;
}

/** The same of one that may have been signed: what was counted within a day has its room of it. */
export function brokenSigningRule(policy: Policy, request: JudgedRequest): BrokenRule | undefined {
  if (request.customerId === TREASURY) return brokenByTreasury(policy, request);
  const { minimumUnits, maximumUnits } = rulesOf(policy, request.asset);
  if (request.amountUnits < minimumUnits) return "BELOW_MINIMUM";
  if (maximumUnits !== undefined && request.amountUnits > maximumUnits) return "ABOVE_MAXIMUM";
  return isListed(policy.allowList, request) ? undefined : "DESTINATION_NOT_LISTED";
}

/** Whether it is more than a whole day's total of the signer: it would wait for room for ever. */
export function isAboveDay(
  policy: Policy,
  { customerId, asset, amountUnits }: Omit<JudgedRequest, "destination">,
): boolean {
  const { signerDayMaxUnits } = rulesOf(policy, asset);
  // What the treasury moves is not counted.
  if (customerId === TREASURY || signerDayMaxUnits === undefined) return false;
  return amountUnits > signerDayMaxUnits;
}

/** Whether no wallet may pay it, by amount or number, in a whole window: it would wait for room for ever. */
function isAboveWallets(
  policy: Policy,
  { customerId, asset, amountUnits }: Omit<JudgedRequest, "destination">,
): boolean {
  // What the treasury moves is bound by no limit.
  if (customerId === TREASURY) return false;
  return rulesOf(policy, asset).limits.some(
    ({ by, maxUnits, maxCount }) =>
      by === "wallet" && (maxCount === 0 || (maxUnits !== undefined && amountUnits > maxUnits)),
  );
}

/** To the cold storage that the policy names, or little enough to be gas for a deposit address. */
function brokenByTreasury(
  { treasury }: Policy,
  { asset, destination, amountUnits }: JudgedRequest,
): BrokenRule | undefined {
  if (treasury?.assets.get(asset)?.coldAddress === destination) return undefined;
  if (treasury === undefined || asset !== NATIVE_ASSET) return "DESTINATION_NOT_LISTED";
  return amountUnits <= treasury.topUpMaxAtoken ? undefined : "ABOVE_MAXIMUM";
}

function isListed({ customers, others }: AllowList, request: JudgedRequest): boolean {
  const listed = customers.get(request.customerId);
  return listed === undefined ? others === "any" : listed.has(request.destination);
}

/** Approvals that an amount needs, by the highest threshold below it. */
export function approvalsFor(
  policy: Policy,
  request: Pick<JudgedRequest, "asset" | "amountUnits"> & { readonly customerId?: string },
): Pick<ApprovalRule, "needed" | "signed"> {
  const { customerId, asset, amountUnits } = request;
  // It goes nowhere but where the policy itself says.
  if (customerId === TREASURY) return { needed: 0, signed: false };
  const rule = rulesOf(policy, asset).approvals.findLast(
    ({ aboveUnits }) => amountUnits > aboveUnits,
  );
  return rule ?? { needed: 0, signed: false };
}

/**
 * The service that is asked about a payment before it is made; undefined for none. What the treasury moves
 * goes nowhere but where the policy itself says.
 */
export function screeningOf(
  { screening }: Policy,
  { customerId }: Pick<JudgedRequest, "customerId">,
): Screening | undefined {
  return customerId === TREASURY ? undefined : screening;
}

/** Names a limit in reasons and decisions: "customer day". */
export function nameLimit({ by, window }: Pick<Limit, "by" | "window">): string {
  return `${by} ${window === "day" ? "day" : `${window}s`}`;
}

/** A policy with its hash. */
export function hashPolicy(policy: Policy): HashedPolicy {
  const text = canonicalText(policy);
  return { policy, text, hash: sha256Hex(Buffer.from(text, "utf8")).slice(2) };
}

/** JSON of all terms in one order, amounts as decimal strings: also what the file of a new home has. */
function canonicalText(policy: Policy): string {
  return JSON.stringify(toPlain(policy));
}

/** The same for people: one term a line. */
export function policyFileText(policy: Policy): string {
  return `${JSON.stringify(toPlain(policy), undefined, 2)}\n`;
}

function toPlain({ assets, allowList, approvers, screening, treasury }: Policy): unknown {
  return {
    format: 1,
    assets: Object.fromEntries(sorted(assets).map(([name, rules]) => [name, plainRules(rules)])),
    allowList: {
      delayHours: allowList.delayHours,
      others: allowList.others,
      customers: Object.fromEntries(
        sorted(allowList.customers).map(([customer, listed]) => [customer, [...listed].toSorted()]),
      ),
    },
    approvers: approvers.map(({ name, publicKey }) => ({ name, publicKey })),
    screening:
      screening === undefined
        ? null
        : {
            url: screening.url,
            timeoutMs: screening.timeoutMs,
            reviewApprovals: screening.reviewApprovals,
          },
    // Left out where there is none: the hash stays what it was before there were any.
    ...(treasury !== undefined && { treasury: plainTreasury(treasury) }),
  };
}

function plainTreasury({ topUpMaxAtoken, assets }: TreasuryRules): unknown {
  return {
    topUpMaxAtoken: topUpMaxAtoken.toString(),
    assets: Object.fromEntries(
      sorted(assets).map(([name, { sweepMinimumUnits, sweepFeeMaxAtoken, coldAddress, band }]) => [
        name,
        {
          sweepMinimumUnits: sweepMinimumUnits.toString(),
          sweepFeeMaxAtoken: sweepFeeMaxAtoken.toString(),
          coldAddress: coldAddress ?? null,
          band:
            band === undefined
              ? null
              : {
                  lowUnits: band.lowUnits.toString(),
                  targetUnits: band.targetUnits.toString(),
                  highUnits: band.highUnits.toString(),
                },
        },
      ]),
    ),
  };
}

function plainRules(rules: AssetRules): unknown {
  return {
    minimumUnits: rules.minimumUnits.toString(),
    maximumUnits: rules.maximumUnits?.toString() ?? null,
    feeUnits: rules.feeUnits.toString(),
    signerDayMaxUnits: rules.signerDayMaxUnits?.toString() ?? null,
    limits: rules.limits.map(({ by, window, maxUnits, maxCount }) => ({
      by,
      window: window === "day" ? window : `${window}s`,
      maxUnits: maxUnits?.toString() ?? null,
      maxCount: maxCount ?? null,
    })),
    approvals: rules.approvals.map(({ aboveUnits, needed, signed }) => ({
      aboveUnits: aboveUnits.toString(),
      needed,
      signed,
    })),
  };
}

function sorted<T>(entries: ReadonlyMap<string, T>): readonly (readonly [string, T])[] {
  return [...entries].toSorted(([left], [right]) => (left < right ? -1 : 1));
}
