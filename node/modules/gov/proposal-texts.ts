/**
 * Title, summary and metadata of proposals: how long they are, and that they do not contradict each
 * other (x/gov `keeper/msg_server.go`, `types/metadata.go`).
 */
import { SDK_CODE } from "../../../chain/cosmos/sdk-fault.js";
import { SDK_REFUSALS_VERSION } from "../../settings/app-version.js";
import { messageFailure } from "../message-fields.js";
import type { ModuleContext } from "../module-context.js";
import { govFailure } from "./gov-failure.js";

/** Bytes of title and metadata, as in the SDK; characters by the first rules. */
const MAX_METADATA_LENGTH = 255;
/** Bytes of the summary, as in the SDK. */
const MAX_SUMMARY_LENGTH = 40 * MAX_METADATA_LENGTH;
/** Bytes of the texts of a content of v1beta1. */
const MAX_CONTENT_TITLE = 140;
const MAX_CONTENT_DESCRIPTION = 10_000;

/** Texts of a proposal. */
export interface ProposalTexts {
  readonly title: string;
  readonly summary: string;
  readonly metadata: string;
}

type Version = Pick<ModuleContext, "appVersion">;

/** Throws `MessageFailure` for a proposal without title or summary. */
export function assertTitled({ title, summary }: ProposalTexts): void {
  if (title === "") {
    throw messageFailure(SDK_CODE.invalidRequest, "proposal title cannot be empty");
  }
  if (summary === "") {
    throw messageFailure(SDK_CODE.invalidRequest, "proposal summary cannot be empty");
  }
}

/** Throws `MessageFailure` for texts that are too long. */
export function assertLengths(version: Version, { title, summary, metadata }: ProposalTexts): void {
  assertMetadata(version, metadata);
  const isFirst = version.appVersion < SDK_REFUSALS_VERSION;
  const summaryLength = lengthOf(version, summary);
  const tooLongSummary = () => {
    const name = isFirst ? "metadataTooLong" : "summaryTooLong";
    return govFailure(name, `got summary with length ${summaryLength}`);
  };
  if (!isFirst && summaryLength > MAX_SUMMARY_LENGTH) throw tooLongSummary();
  const titleLength = lengthOf(version, title);
  if (titleLength > MAX_METADATA_LENGTH) {
    const name = isFirst ? "title" : "metadata";
    throw govFailure("metadataTooLong", `got ${name} with length ${titleLength}`);
  }
  if (summaryLength > MAX_SUMMARY_LENGTH) throw tooLongSummary();
}

/** Throws `MessageFailure` for metadata, of a proposal or a vote, that are too long. */
export function assertMetadata(version: Version, metadata: string): void {
  const length = lengthOf(version, metadata);
  if (length <= MAX_METADATA_LENGTH) return;
  throw govFailure("metadataTooLong", `got metadata with length ${length}`);
}

/** By the first rules UTF-16 units are counted, by the SDK's bytes. */
function lengthOf({ appVersion }: Version, text: string): number {
  return appVersion < SDK_REFUSALS_VERSION ? text.length : Buffer.byteLength(text, "utf8");
}

/**
 * Throws `MessageFailure` where metadata in the recommended form name another title or summary than the
 * proposal. Metadata of any other form say nothing; those that are too long are refused anyway.
 */
export function assertAgreeing({ title, summary, metadata }: ProposalTexts): void {
  if (metadata === "" || Buffer.byteLength(metadata, "utf8") > MAX_METADATA_LENGTH) return;
  const told = wordsOf(metadata);
  if (told === undefined) return;
  const assertSame = (name: string, found: string, wanted: string) => {
    if (found === wanted) return;
    const shown = wanted.slice(0, MAX_METADATA_LENGTH);
    const text = `metadata ${name} '${found}' must equal proposal ${name} '${shown}'`;
    throw govFailure("invalidContent", text);
  };
  assertSame("title", told.title, title);
  assertSame("summary", told.summary, summary);
}

/** Fields of the recommended form; Go's decoder takes a name in any case, by simple folding. */
const TEXT_FIELDS = /^(title|summary|details|proposal_forum_url|vote_option_context)$/iu;
const AUTHORS = /^authors$/iu;

/** Title and summary as Go's decoder reads them; undefined for what it refuses. */
function wordsOf(
  metadata: string,
): { readonly title: string; readonly summary: string } | undefined {
  let value: unknown;
  try {
    value = JSON.parse(metadata);
  } catch {
    return undefined;
  }
  // Go leaves everything as it is for a null.
  if (value === null) return { title: "", summary: "" };
  if (typeof value !== "object" || Array.isArray(value)) return undefined;
  const found = { title: "", summary: "" };
  for (const [name, given] of Object.entries(value)) {
    if (AUTHORS.test(name) && !isTextList(given)) return undefined;
    if (!TEXT_FIELDS.test(name) || given === null) continue;
    if (typeof given !== "string") return undefined;
    // Halves of surrogates are U+FFFD to Go.
    if (/^title$/iu.test(name)) found.title = given.toWellFormed();
    if (/^summary$/iu.test(name)) found.summary = given.toWellFormed();
  }
  return found;
}

function isTextList(value: unknown): boolean {
  if (value === null) return true;
  return Array.isArray(value) && value.every((one) => one === null || typeof one === "string");
}

/** Throws `MessageFailure` for texts that a content of v1beta1 cannot have. */
export function assertContentTexts(title: string, description: string): void {
  const refuse = (text: string) => govFailure("invalidContent", `proposal ${text}`);
  if (/^\p{White_Space}*$/u.test(title)) throw refuse("title cannot be blank");
  if (Buffer.byteLength(title, "utf8") > MAX_CONTENT_TITLE) {
    throw refuse(`title is longer than max length of ${MAX_CONTENT_TITLE}`);
  }
  if (description === "") throw refuse("description cannot be blank");
  if (Buffer.byteLength(description, "utf8") > MAX_CONTENT_DESCRIPTION) {
    throw refuse(`description is longer than max length of ${MAX_CONTENT_DESCRIPTION}`);
  }
}
