/** The rules of payment in the withdrawal API: the policy, who has to sign what, the kill switch. */
import { bytesToHex } from "../../chain/hex.js";
import { AppError, errorCode, errorMessage, present } from "../../chain/errors.js";
import {
  APPROVAL_DECISIONS,
  approvalDigest,
  type ApprovedTerms,
  approvalText,
} from "../../ledger/policy/approval-digest.js";
import { countingApprovals } from "../../ledger/policy/approval-rows.js";
import type { Approver } from "../../ledger/policy/policy.js";
import { readKillSwitch, setKillSwitch } from "../../ledger/kill-switch/kill-switch.js";
import {
  exchangeKillSwitchFile,
  lookAtKillSwitchFile,
  writeKillSwitchFile,
} from "../../ledger/kill-switch/kill-switch-file.js";
import {
  isKillSwitchLevel,
  type KillSwitchState,
  stricter,
} from "../../ledger/kill-switch/kill-switch-level.js";
import { LedgerError } from "../../ledger/errors.js";
import { toWithdrawalId } from "../../ledger/requests/withdrawal-id.js";
import { findWithdrawal, type Withdrawal } from "../../ledger/withdrawals/withdrawals.js";
import { callerName } from "../../runtime/http/http-access.js";
import { withoutAccess } from "../../runtime/config/config-toml.js";
import type { HttpReply } from "../../runtime/http/http-reply.js";
import type { HttpRequest, KeyedRoute } from "../../runtime/http/http-route.js";
import type { Clock } from "../../runtime/process/clock.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import { ApiError } from "../errors.js";
import { fileSwitch } from "../kill-switch.js";
import type { PolicySource } from "../lane/lane-context.js";
import { invalidField, readReason } from "./fields.js";

/** What these routes need. */
export interface PolicyRouteParts {
  readonly database: SqlDatabase;
  readonly policy: PolicySource;
  readonly chainId: bigint;
  /** The home's kill switch. */
  readonly switchFile: string;
  readonly clock: Clock;
}

/** Looks at a file that others keep writing: each write is a person's word, of which so many never meet. */
const MAX_LOOKS = 10;

/** Longest name of who set the switch, as in the ledger's table. */
const MAX_BY_LENGTH = 100;

/** Routes of `openapi/withdrawal.yaml` about the rules of payment. */
export function createPolicyRoutes(parts: PolicyRouteParts): readonly KeyedRoute[] {
  return [
    { method: "get", path: "/v1/policy", scope: "audit:read", handler: () => getPolicy(parts) },
    {
      method: "get",
      path: "/v1/withdrawals/{id}/approvals",
      scope: "withdrawals:read",
      handler: (request) => getApprovals(parts, request),
    },
    {
      method: "get",
      path: "/v1/kill-switch",
      scope: "withdrawals:read",
      handler: async () => ({ body: await showSwitch(parts) }),
    },
    {
      method: "post",
      path: "/v1/kill-switch",
      scope: "operations:write",
      handler: (request) => raiseSwitch(parts, request),
    },
  ];
}

/** All terms, but for what opens the screening service: who audits the policy does not ask it. */
async function getPolicy({ policy: source, chainId }: PolicyRouteParts): Promise<HttpReply> {
  const { hash, text, policy } = await source.current();
  const { screening } = policy;
  const terms: object = JSON.parse(text);
  const shown =
    screening === undefined
      ? terms
      : { ...terms, screening: { ...screening, url: withoutAccess(screening.url) } };
  return { body: { hash, chainId: chainId.toString(), terms: shown } };
}

/** What persons have to agree to, and what exactly is signed where signatures are asked for. */
async function getApprovals(parts: PolicyRouteParts, request: HttpRequest): Promise<HttpReply> {
  const { database, policy, chainId } = parts;
  const id = toWithdrawalId(request.params["id"] ?? "");
  const withdrawal = await findWithdrawal(database, id);
  if (withdrawal === undefined) throw new ApiError(404, "NOT_FOUND", "no withdrawal has this id");
  const { approval } = withdrawal;
  const { policyHash } = approval;
  const approvers = await approversOf(policy);
  return {
    body: {
      withdrawalId: withdrawal.id,
      status: withdrawal.status,
      needed: approval.needed,
      given: countingApprovals(approval).length,
      signed: approval.signed,
      policyHash: policyHash ?? null,
      approvers,
      messages:
        policyHash === undefined
          ? []
          : APPROVAL_DECISIONS.map((decision) => {
              const terms = termsOf(withdrawal, chainId);
              const said = { policyHash, decision };
              const sha256 = bytesToHex(approvalDigest(terms, said)).slice(2);
              return { decision, text: approvalText(terms, said), sha256 };
            }),
    },
  };
}

/** Nobody while the policy cannot be used: what waits is looked at, and rejected, all the same. */
async function approversOf(policy: PolicySource): Promise<readonly Approver[]> {
  try {
    return (await policy.current()).policy.approvers;
  } catch (error) {
    if (errorCode(error) !== "POLICY_UNREADABLE") throw error;
    return [];
  }
}

function termsOf(withdrawal: Withdrawal, chainId: bigint): ApprovedTerms {
  const { id: withdrawalId, customerId, asset, destination, amountUnits } = withdrawal;
  return { chainId, withdrawalId, customerId, asset, destination, amountUnits };
}

async function showSwitch({ database, switchFile }: PolicyRouteParts) {
  const home = fileSwitch(switchFile);
  const ledger = await readKillSwitch(database);
  return { level: stricter(home, ledger).level, home: encode(home), ledger: encode(ledger) };
}

function encode({ level, reason, by, at }: KillSwitchState) {
  return { level, reason, by, at: at ?? null };
}

/**
 * Stops more than is stopped. The ledger first, because only it tells whether that is so; a home that
 * cannot be written, as in a container, is told and obeys the ledger. Where the ledger cannot be told, this
 * home stops all the same. Payments go on by a person's word at the command line alone: whoever has a key,
 * or a browser of somebody who has one, can only stop.
 */
async function raiseSwitch(parts: PolicyRouteParts, request: HttpRequest): Promise<HttpReply> {
  const caller = present(request.caller, "caller of a gated route");
  const by = callerName(caller, request.headers).slice(0, MAX_BY_LENGTH);
  const level: unknown = Reflect.get(Object(request.body), "level");
  if (!isKillSwitchLevel(level) || level === "none") {
    throw invalidField("level", "expected stop-new, stop-sign or stop-broadcast");
  }
  const at = new Date(parts.clock.nowMs()).toISOString();
  const wanted = { level, reason: readReason(request.body), by, at };
  try {
    await setKillSwitch(parts.database, wanted, { neverLower: true });
  } catch (error) {
    const isRefused = error instanceof LedgerError && error.code === "SWITCH_LOWERED";
    // Whatever else is wrong with the ledger: who wants it stopped has it stopped here.
    if (!isRefused) throw await stopHome(parts, wanted, error);
    throw new ApiError(
      409,
      "SWITCH_LOWERED",
      `${error.message}: a person lowers it with \`causeway killswitch set\` or \`lift\``,
    );
  }
  const homeFault = await raiseHome(parts, wanted);
  return { body: { ...(await showSwitch(parts)), homeFault } };
}

/**
 * The home's file alone, where it becomes stricter: that is never wrong, whatever the ledger says. What
 * somebody sets meanwhile is looked at anew.
 * @param cause why the ledger was not told
 * @returns what the caller is told
 */
async function stopHome(
  { switchFile }: PolicyRouteParts,
  wanted: KillSwitchState,
  cause: unknown,
): Promise<ApiError> {
  let homeFault = "others write its file at the same moment";
  for (let looks = 0; looks < MAX_LOOKS; looks += 1) {
    const looked = lookAtKillSwitchFile(switchFile);
    const before = fileSwitch(switchFile);
    if (stricter(before, wanted) !== wanted) return toldHome(before, cause);
    try {
      if (await exchangeKillSwitchFile(switchFile, looked, wanted)) {
        return toldHome(wanted, cause);
      }
    } catch (error) {
      if (errorCode(error) === "UNKNOWN") throw error;
      homeFault = errorMessage(error);
      break;
    }
  }
  const told = "neither the ledger nor this home could be told: nothing more is stopped";
  return new ApiError(503, "UNAVAILABLE", told, { homeFault }, cause);
}

function toldHome({ level }: KillSwitchState, cause: unknown): ApiError {
  const next = cause instanceof AppError && cause.retriable ? "set it again" : "see the log";
  const told = `this home is at ${level} and obeys; the ledger could not be told: ${next}`;
  return new ApiError(503, "UNAVAILABLE", told, {}, cause);
}

/**
 * The home's file, as high as the ledger and with the reason of now: a level that was told it meanwhile may
 * have had its file replaced by this one's. @returns why it cannot be written; null where it can
 */
async function raiseHome(
  { database, switchFile }: PolicyRouteParts,
  wanted: KillSwitchState,
): Promise<string | null> {
  let state = wanted;
  let isDue = stricter(state, fileSwitch(switchFile)) === state;
  while (isDue) {
    try {
      await writeKillSwitchFile(switchFile, state);
    } catch (error) {
      return errorMessage(error);
    }
    state = await readKillSwitch(database);
    isDue = stricter(fileSwitch(switchFile), state) === state;
  }
  return null;
}
