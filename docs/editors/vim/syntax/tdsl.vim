" SPDX-License-Identifier: Apache-2.0
" TDSL, tensor contractions. Copy this folder into ~/.vim.
if exists("b:current_syntax")
  finish
endif
syntax keyword tdslKeyword include dim const kernel inout spill
syntax keyword tdslType f64 f32 f16 bf16 i32 i64 bool c64 c128 i8 u8 i16 u16 u32 f8e4m3 f8e5m2 f8e4m3fn
syntax keyword tdslFunction abs exp log sqrt rsqrt sin cos tanh pow erf sigmoid relu gelu floor ceil round sign finite exp2 expm1 log2 log1p atan atan2 mod abs2 arg min max select conj re im extent index sum prod any all argmax argmin mean var norm count logsumexp cholesky solve inverse logdet perm antisym einsum add sub mul div neg not and or lt le gt ge eq ne
syntax keyword tdslConstant true false inf nan pi
syntax keyword tdslAttribute symmetric antisymmetric hermitian antihermitian lower upper
syntax match tdslNumber "\v<\d+(\.\d*)?([eE][+-]?\d+)?i?>"
syntax region tdslString start=+"+ end=+"+ oneline
syntax match tdslComment "//.*$" contains=@Spell
syntax region tdslComment start="/\*" end="\*/" contains=@Spell
highlight default link tdslKeyword Keyword
highlight default link tdslType Type
highlight default link tdslFunction Function
highlight default link tdslConstant Constant
highlight default link tdslAttribute PreProc
highlight default link tdslNumber Number
highlight default link tdslString String
highlight default link tdslComment Comment
setlocal commentstring=//\ %s
if executable("tdslc")
  setlocal equalprg=tdslc\ fmt\ -
endif
let b:current_syntax = "tdsl"
