/**
 * From second moments of queries and keys to a sketch of the keys: the rank-r map of k that keeps most
 * of the variance of q.k (idea: Loki, arXiv 2406.02542, with the queries weighed in). With A = Cq^(1/2)
 * and U the leading eigenvectors of A Ck A, U^T A k are independent parts of the score, largest first.
 */
import { EigenvalueDecomposition, Matrix } from "ml-matrix";
import type { KeyMoments, KeySketch } from "../../engine/backend.ts";
import type { ModelConfig } from "../../model/config.ts";

/** The step of a code over a part's deviation: with codes to +-7, the least error of a normal. */
const STEP = 0.42;
/** Of the mean eigenvalue, added to each: text that is too short leaves directions unseen. */
const RIDGE = 1e-4;
/** Dimensions that a code has unless told otherwise: 16 diverge twice as far, 32 gain next to nothing. */
export const SKETCH_DIMENSIONS = 24;

/** The shape that a sketch depends on. */
export type SketchShape = Pick<ModelConfig, "layers" | "kvHeads" | "headSize">;

/** The maps of one KV head, each of shape [dimensions][headSize], and the offset of its codes. */
interface HeadSketch {
  readonly keyMap: Matrix;
  readonly keyOffset: Matrix;
  readonly queryMap: Matrix;
}

/**
 * @param dimensions Of a code: a multiple of 8, at most the head's size.
 * @throws {RangeError} The dimensions do not fit, or nothing was gathered.
 */
export function keySketch(
  moments: KeyMoments,
  shape: SketchShape,
  dimensions = Math.min(SKETCH_DIMENSIONS, shape.headSize),
): KeySketch {
  const { headSize } = shape;
  if (!(dimensions > 0 && dimensions <= headSize && dimensions % 8 === 0)) {
    throw new RangeError(
      `Cannot sketch keys: dimensions are ${dimensions}, allowed are multiples of 8 to ${headSize}`,
    );
  }
  if (moments.tokens < 1) throw new RangeError("Cannot sketch keys: no token was gathered");
  const heads = shape.layers * shape.kvHeads;
  const sketch = {
    dimensions,
    keyMap: new Float32Array(heads * dimensions * headSize),
    keyOffset: new Float32Array(heads * dimensions),
    queryMap: new Float32Array(heads * dimensions * headSize),
  };
  for (let head = 0; head < heads; head++) {
    const { keyMap, keyOffset, queryMap } = sketchHead(moments, head, headSize, dimensions);
    sketch.keyMap.set(keyMap.to1DArray(), head * dimensions * headSize);
    sketch.keyOffset.set(keyOffset.to1DArray(), head * dimensions);
    sketch.queryMap.set(queryMap.to1DArray(), head * dimensions * headSize);
  }
  return sketch;
}

function sketchHead(
  { keyMean, keys, queries }: KeyMoments,
  head: number,
  size: number,
  dimensions: number,
): HeadSketch {
  const square = (moments: Float32Array) =>
    Matrix.from1DArray(size, size, moments.subarray(head * size ** 2, (head + 1) * size ** 2));
  const mean = Matrix.columnVector(keyMean.subarray(head * size, (head + 1) * size));
  // Keys around their mean, since the softmax does not see q.mean; queries around nothing.
  const keySpread = square(keys).sub(mean.mmul(mean.transpose()));
  const { values, vectors } = eigen(square(queries));
  const root = (power: number) =>
    vectors.mmul(Matrix.diag(values.map((value) => value ** power))).mmul(vectors.transpose());
  const [half, inverse] = [root(0.5), root(-0.5)];
  const parts = eigen(half.mmul(keySpread).mmul(half));
  const leading = parts.vectors.subMatrix(0, size - 1, 0, dimensions - 1).transpose();
  const steps = parts.values.slice(0, dimensions).map((variance) => STEP * Math.sqrt(variance));
  const keyMap = Matrix.diag(steps.map((step) => 1 / step)).mmul(leading).mmul(half);
  return {
    keyMap,
    keyOffset: keyMap.mmul(mean),
    queryMap: Matrix.diag(steps).mmul(leading).mmul(inverse).div(Math.sqrt(size)),
  };
}

/** Of a covariance: eigenvalues with the ridge, largest first, and eigenvectors as columns. */
function eigen(covariance: Matrix): { values: number[]; vectors: Matrix } {
  const found = new EigenvalueDecomposition(covariance, { assumeSymmetric: true });
  const size = covariance.rows;
  // A head that nothing excites still gets finite maps.
  const ridge = RIDGE * Math.max(covariance.trace() / size, 1e-20);
  const values = found.realEigenvalues.map((value) => Math.max(value, 0) + ridge).reverse();
  const ascending = found.eigenvectorMatrix;
  const vectors = new Matrix(size, size);
  for (let i = 0; i < size; i++) vectors.setColumn(i, ascending.getColumn(size - 1 - i));
  return { values, vectors };
}
