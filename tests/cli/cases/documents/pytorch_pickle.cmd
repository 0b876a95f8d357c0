# A file of PyTorch as it was before version 1.6, which is a pickle.
printf '\200\002\212\nl\374\234F\371 j\250P\031.\200\002M\351\003.' | tidu info
