/**
 * The file of a ledger's export: JSON lines, so that any program reads it. The first line names the
 * ledger, the last one has the count of lines before it and the SHA-256 of their bytes.
 */
import { createHash } from "node:crypto";
import { type FileHandle, open, rm } from "node:fs/promises";
import { z } from "zod";
import { schemaFaultText } from "../../../runtime/config/schema-faults.js";
import { SECRET_MODE } from "../../../runtime/files/durable-file.js";
import type { CanonicalValue } from "../../../ledger/tamper/link-rules.js";
import { LINK_KINDS } from "../../../ledger/tamper/link-rules.js";
import { fileCause } from "../../errors.js";
import { AuditError } from "../errors.js";
import { linesOf } from "../json-lines.js";

/** First field of the file. */
export const EXPORT_FORMAT = "causeway-ledger-export/1";

/**
 * The longest row is that of a rewind: its evidence names all that the chain had lost. As many rows as one
 * plan holds (`ledger/recovery`), a hundred thousand of each kind, stay below.
 */
const MAX_LINE_LENGTH = 64 * 1_048_576;

/** Lines that are gathered before they are written. */
const WRITE_BYTES = 262_144;

const hash = z.string().regex(/^[0-9a-f]{64}$/);
const count = z.int().min(0);
/** Sums of as many payments as there are: no payment is above 2^256, and a balance may be. */
const units = z.string().regex(/^-?(0|[1-9][0-9]{0,99})$/);
const canonical: z.ZodType<CanonicalValue> = z.lazy(() =>
  z.union([z.string(), z.null(), z.array(canonical)]),
);
const row = z.array(canonical);

const line = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("ledger"),
    format: z.literal(EXPORT_FORMAT),
    ledgerId: z.string().max(100),
    genesisHash: z.string().max(100),
    chainId: z.string().max(30),
    exportedAt: z.string().max(40),
    links: count,
    head: hash,
    /** Lines of deposits; absent in exports of former releases, which had none. */
    deposits: count.optional(),
    /** The same of withdrawals, of wallets, and of operators' decisions. */
    withdrawals: count.optional(),
    wallets: count.optional(),
    decisions: count.optional(),
  }),
  z.strictObject({
    type: z.literal("link"),
    n: z.int().min(1),
    kind: z.enum(LINK_KINDS),
    key: count,
    digest: hash,
    previous: hash,
    hash,
    row: row.nullable(),
  }),
  z.strictObject({
    type: z.literal("unlinked"),
    kind: z.enum(LINK_KINDS),
    key: count,
    isLate: z.boolean(),
    row,
  }),
  z.strictObject({
    type: z.literal("balance"),
    customerId: z.string().max(100),
    asset: z.string().max(100),
    available: units,
    held: units,
  }),
  z.strictObject({
    type: z.literal("deposit"),
    depositId: z.string().max(100),
    customerId: z.string().max(100),
    status: z.string().max(30),
  }),
  z.strictObject({
    type: z.literal("withdrawal"),
    withdrawalId: z.string().max(100),
    status: z.string().max(30),
    /** The key; null where none is known, absent in exports of former releases. */
    requestedBy: z.string().max(100).nullable().optional(),
  }),
  z.strictObject({
    type: z.literal("wallet"),
    address: z.string().max(100),
    status: z.string().max(30),
    reason: z.string().max(1_000),
    operator: z.string().max(100),
  }),
  z.strictObject({
    type: z.literal("decision"),
    decisionId: count,
    status: z.string().max(30),
    decidedBy: z.string().max(100).nullable(),
  }),
  z.strictObject({ type: z.literal("end"), lines: count, sha256: hash }),
]);

/** A line of the file. */
export type ExportLine = z.infer<typeof line>;

/** What was written. */
export interface WrittenExport {
  readonly lines: number;
  /** Of all lines before the last one, which names it. */
  readonly sha256: string;
}

/**
 * Writes a new file; an existing one is never touched, and what cannot be written whole is removed.
 * @throws BAD_OPTION where a file is there, or it cannot be written; what the lines throw
 */
export async function writeExport(
  path: string,
  lines: AsyncIterable<Exclude<ExportLine, { readonly type: "end" }>>,
): Promise<WrittenExport> {
  // Customers' names and sums are in it.
  const file = await open(path, "wx", SECRET_MODE).catch((cause: unknown) => {
    throw new AuditError("BAD_OPTION", `Cannot make ${path}: ${fileCause(cause)}.`, { cause });
  });
  try {
    return await writeLines({ file, path }, lines);
  } catch (error) {
    await rm(path, { force: true }).catch(() => undefined);
    throw error;
  } finally {
    await file.close();
  }
}

interface NewFile {
  readonly file: FileHandle;
  readonly path: string;
}

async function writeLines(
  to: NewFile,
  lines: AsyncIterable<Exclude<ExportLine, { readonly type: "end" }>>,
): Promise<WrittenExport> {
  const digest = createHash("sha256");
  let [written, waiting] = [0, ""];
  for await (const one of lines) {
    waiting += `${JSON.stringify(one)}\n`;
    written += 1;
    if (waiting.length < WRITE_BYTES) continue;
    digest.update(waiting);
    await append(to, waiting);
    waiting = "";
  }
  const sha256 = digest.update(waiting).digest("hex");
  await append(to, `${waiting}${JSON.stringify({ type: "end", lines: written, sha256 })}\n`);
  await onDisk(to, () => to.file.sync());
  return { lines: written, sha256 };
}

/** All of a text: the system may write a part of it where the disk has no room for more. */
function append(to: NewFile, text: string): Promise<void> {
  return onDisk(to, () => to.file.appendFile(text));
}

async function onDisk({ path }: NewFile, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (cause) {
    throw new AuditError("BAD_OPTION", `Cannot write ${path}: ${fileCause(cause)}.`, { cause });
  }
}

/**
 * The lines of a file, the last one held against those before it.
 * @throws BUNDLE_UNREADABLE for what is no export, or not the whole of one
 */
export async function* readExport(path: string): AsyncGenerator<ExportLine> {
  const digest = createHash("sha256");
  const bound = { maxLength: MAX_LINE_LENGTH, tooLong: (place: number) => tooLong(path, place) };
  let [lines, isOver] = [0, false];
  try {
    for await (const text of linesOf(path, bound)) {
      if (isOver) throw unreadable(path, "there are lines behind its end");
      const parsed = parseLine(path, text, lines + 1);
      if (parsed.type === "end") {
        isOver = true;
        const isWhole = parsed.lines === lines && parsed.sha256 === digest.digest("hex");
        if (!isWhole) throw unreadable(path, "its last line does not fit those before it");
      } else {
        digest.update(`${text}\n`);
        lines += 1;
      }
      yield parsed;
    }
  } catch (cause) {
    if (cause instanceof AuditError) throw cause;
    throw unreadable(path, fileCause(cause), cause);
  }
  if (!isOver) throw unreadable(path, "it breaks off");
}

function tooLong(path: string, place: number): AuditError {
  return unreadable(path, `line ${place} is too long`);
}

function parseLine(path: string, text: string, place: number): ExportLine {
  if (text.length > MAX_LINE_LENGTH) throw tooLong(path, place);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw unreadable(path, `line ${place} is no JSON`, cause);
  }
  // The same member twice, for example: programs differ in which of the two they read.
  if (JSON.stringify(value) !== text) {
    throw unreadable(path, `line ${place} is not written as exports are`);
  }
  const parsed = line.safeParse(value);
  if (parsed.success) return parsed.data;
  throw unreadable(path, `line ${place}: ${schemaFaultText(parsed.error)}`);
}

function unreadable(path: string, reason: string, cause?: unknown): AuditError {
  return new AuditError("BUNDLE_UNREADABLE", `${path} is no whole export: ${reason}.`, { cause });
}
