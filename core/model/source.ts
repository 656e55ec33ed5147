/** Random access to the bytes of a model file, wherever it lies. Effects supply it. */
export interface ByteSource {
  /** File name or URL, for messages. */
  readonly name: string;
  /** Bytes in all. */
  readonly size: number;
  /**
   * Reads exactly `target.length` bytes from `offset` on.
   *
   * @throws {ModelError} The range is not inside the file, or reading failed.
   */
  read(offset: number, target: Uint8Array): Promise<void>;
  close(): Promise<void>;
}
