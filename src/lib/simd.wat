;; Sums over int8 vectors, sixteen components at a time. simd.ts says what each is for.
;; `node scripts/simd.mjs` makes simd.wasm of this file. All addresses are in bytes, all counts multiples of 16.
(module
  (import "" "memory" (memory 1))

  ;; Writes the product of a vector with each of some rows as a double. Both are int8, and a row is `count` bytes.
  ;; Each lane sums a quarter of the products, so it holds 532,000 components. A row of 2 MB has fewer.
  (func (export "products")
    (param $vector i32) (param $row i32) (param $rows i32) (param $count i32) (param $out i32)
    (local $at i32) (local $sum v128) (local $a v128) (local $b v128)
    (loop $each
      (local.set $at (i32.const 0))
      (local.set $sum (v128.const i32x4 0 0 0 0))
      (loop $sixteen
        (local.set $a (v128.load (i32.add (local.get $vector) (local.get $at))))
        (local.set $b (v128.load (i32.add (local.get $row) (local.get $at))))
        (local.set $sum (i32x4.add (local.get $sum) (i32x4.add
          (i32x4.dot_i16x8_s (i16x8.extend_low_i8x16_s (local.get $a)) (i16x8.extend_low_i8x16_s (local.get $b)))
          (i32x4.dot_i16x8_s (i16x8.extend_high_i8x16_s (local.get $a)) (i16x8.extend_high_i8x16_s (local.get $b))))))
        (local.set $at (i32.add (local.get $at) (i32.const 16)))
        (br_if $sixteen (i32.lt_u (local.get $at) (local.get $count))))
      (f64.store (local.get $out) (f64.convert_i64_s (i64.add
        (i64.add
          (i64.extend_i32_s (i32x4.extract_lane 0 (local.get $sum)))
          (i64.extend_i32_s (i32x4.extract_lane 1 (local.get $sum))))
        (i64.add
          (i64.extend_i32_s (i32x4.extract_lane 2 (local.get $sum)))
          (i64.extend_i32_s (i32x4.extract_lane 3 (local.get $sum)))))))
      (local.set $row (i32.add (local.get $row) (local.get $count)))
      (local.set $out (i32.add (local.get $out) (i32.const 8)))
      (br_if $each (local.tee $rows (i32.sub (local.get $rows) (i32.const 1))))))

  ;; Adds rows of int8, each times its factor. A term is the address of a row and a float32, its factor.
  ;; Writes `count` float32. Each product and each sum is rounded to float32, in the order of the terms.
  (func (export "sum") (param $terms i32) (param $end i32) (param $count i32) (param $out i32)
    (local $at i32) (local $term i32) (local $factor v128) (local $row v128) (local $half v128)
    (local $a v128) (local $b v128) (local $c v128) (local $d v128)
    (loop $sixteen
      (local.set $a (v128.const i32x4 0 0 0 0))
      (local.set $b (v128.const i32x4 0 0 0 0))
      (local.set $c (v128.const i32x4 0 0 0 0))
      (local.set $d (v128.const i32x4 0 0 0 0))
      (local.set $term (local.get $terms))
      (loop $each
        (local.set $factor (v128.load32_splat offset=4 (local.get $term)))
        (local.set $row (v128.load (i32.add (i32.load (local.get $term)) (local.get $at))))
        (local.set $half (i16x8.extend_low_i8x16_s (local.get $row)))
        (local.set $a (f32x4.add (local.get $a)
          (f32x4.mul (local.get $factor) (f32x4.convert_i32x4_s (i32x4.extend_low_i16x8_s (local.get $half))))))
        (local.set $b (f32x4.add (local.get $b)
          (f32x4.mul (local.get $factor) (f32x4.convert_i32x4_s (i32x4.extend_high_i16x8_s (local.get $half))))))
        (local.set $half (i16x8.extend_high_i8x16_s (local.get $row)))
        (local.set $c (f32x4.add (local.get $c)
          (f32x4.mul (local.get $factor) (f32x4.convert_i32x4_s (i32x4.extend_low_i16x8_s (local.get $half))))))
        (local.set $d (f32x4.add (local.get $d)
          (f32x4.mul (local.get $factor) (f32x4.convert_i32x4_s (i32x4.extend_high_i16x8_s (local.get $half))))))
        (local.set $term (i32.add (local.get $term) (i32.const 8)))
        (br_if $each (i32.lt_u (local.get $term) (local.get $end))))
      (v128.store (local.get $out) (local.get $a))
      (v128.store offset=16 (local.get $out) (local.get $b))
      (v128.store offset=32 (local.get $out) (local.get $c))
      (v128.store offset=48 (local.get $out) (local.get $d))
      (local.set $out (i32.add (local.get $out) (i32.const 64)))
      (local.set $at (i32.add (local.get $at) (i32.const 16)))
      (br_if $sixteen (i32.lt_u (local.get $at) (local.get $count)))))

  ;; The product of a vector of float32 with a row of int8.
  (func (export "product") (param $vector i32) (param $row i32) (param $count i32) (result f32)
    (local $end i32) (local $a v128) (local $b v128) (local $half v128)
    (local.set $end (i32.add (local.get $row) (local.get $count)))
    (loop $eight
      (local.set $half (v128.load8x8_s (local.get $row)))
      (local.set $a (f32x4.add (local.get $a) (f32x4.mul
        (v128.load (local.get $vector)) (f32x4.convert_i32x4_s (i32x4.extend_low_i16x8_s (local.get $half))))))
      (local.set $b (f32x4.add (local.get $b) (f32x4.mul
        (v128.load offset=16 (local.get $vector)) (f32x4.convert_i32x4_s (i32x4.extend_high_i16x8_s (local.get $half))))))
      (local.set $vector (i32.add (local.get $vector) (i32.const 32)))
      (br_if $eight (i32.lt_u (local.tee $row (i32.add (local.get $row) (i32.const 8))) (local.get $end))))
    (local.set $a (f32x4.add (local.get $a) (local.get $b)))
    (f32.add
      (f32.add (f32x4.extract_lane 0 (local.get $a)) (f32x4.extract_lane 1 (local.get $a)))
      (f32.add (f32x4.extract_lane 2 (local.get $a)) (f32x4.extract_lane 3 (local.get $a)))))

  ;; Writes a vector of float32 as int8, in steps of a 127th of its largest component, which it returns: 2^-120 if it is smaller,
  ;; and not zero. The factor would be infinite otherwise.
  (func (export "quantize") (param $vector i32) (param $count i32) (param $out i32) (result f32)
    (local $at i32) (local $end i32) (local $most v128) (local $largest f32) (local $factor v128)
    (local.set $end (i32.add (local.get $vector) (i32.mul (local.get $count) (i32.const 4))))
    (local.set $at (local.get $vector))
    (loop $four
      (local.set $most (f32x4.max (local.get $most) (f32x4.abs (v128.load (local.get $at)))))
      (br_if $four (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 16))) (local.get $end))))
    (local.set $largest (f32.max
      (f32.max (f32x4.extract_lane 0 (local.get $most)) (f32x4.extract_lane 1 (local.get $most)))
      (f32.max (f32x4.extract_lane 2 (local.get $most)) (f32x4.extract_lane 3 (local.get $most)))))
    (if (f32.gt (local.get $largest) (f32.const 0))
      (then (local.set $largest (f32.max (local.get $largest) (f32.const 0x1p-120)))))
    (local.set $factor (f32x4.splat (f32.div (f32.const 127) (local.get $largest))))
    (local.set $at (local.get $vector))
    (loop $sixteen
      (v128.store (local.get $out) (i8x16.narrow_i16x8_s
        (i16x8.narrow_i32x4_s
          (i32x4.trunc_sat_f32x4_s (f32x4.nearest (f32x4.mul (v128.load (local.get $at)) (local.get $factor))))
          (i32x4.trunc_sat_f32x4_s (f32x4.nearest (f32x4.mul (v128.load offset=16 (local.get $at)) (local.get $factor)))))
        (i16x8.narrow_i32x4_s
          (i32x4.trunc_sat_f32x4_s (f32x4.nearest (f32x4.mul (v128.load offset=32 (local.get $at)) (local.get $factor))))
          (i32x4.trunc_sat_f32x4_s (f32x4.nearest (f32x4.mul (v128.load offset=48 (local.get $at)) (local.get $factor)))))))
      (local.set $out (i32.add (local.get $out) (i32.const 16)))
      (br_if $sixteen (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 64))) (local.get $end))))
    (local.get $largest)))
